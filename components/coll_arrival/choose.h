/* The choice of a call's form: pure functions of what is the same at all members. */
#ifndef COLL_ARRIVAL_CHOOSE_H
#define COLL_ARRIVAL_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arrival_form {
    FORM_DIRECT,
    FORM_PAP_DIRECT,
    FORM_SHM_DIRECT,
    FORM_PAP_SHM_DIRECT,
    FORM_AUTO,
    FORM_BRUCK,
    FORM_PAP_BRUCK,
    FORM_DOUBLING,
    FORM_PAP_DOUBLING
};
static inline bool arrival_form_has_nodes(enum arrival_form form)
{
    return form == FORM_SHM_DIRECT || form == FORM_PAP_SHM_DIRECT || form == FORM_AUTO;
}
static inline bool arrival_form_has_rounds(enum arrival_form form)
{
    return form >= FORM_BRUCK;
}

/* A time is told to others as the number of binary digits of its microseconds: 0 below 1 us, 1 below 2 us, 11 below
 * 2 ms; the last stands for all from 16 ms on. */
enum { SKEW_CLASSES = 16 };
unsigned arrival_skew_class(uint64_t ns);

/* The later of two, of which another process may have told anything for the second. */
static inline uint8_t arrival_longer(uint8_t a, uint8_t told)
{
    uint8_t b = told < SKEW_CLASSES ? told : SKEW_CLASSES - 1;
    return a > b ? a : b;
}

/* Whether the form sends to those first that have arrived, and lets none wait for another. */
bool arrival_is_aware(enum arrival_form form);

/* Bytes of the longest block that goes by the leaders of nodes; 0: none does. `agreed` is what the areas have room for,
 * `skew` the class of an earlier call, `most_us` the skew up to which form auto goes by leaders, who wait for all of
 * their node (paper, 5.1: not at MIF 512), `most` its longest block. */
size_t arrival_choose_limit(enum arrival_form form, size_t agreed, unsigned skew, size_t most, uint64_t most_us);

#endif

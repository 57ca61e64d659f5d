/* The choice of a call's form: pure functions of what is the same at all members. */
#ifndef COLL_ARRIVAL_CHOOSE_H
#define COLL_ARRIVAL_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <strata/coll.h>

enum arrival_form {
    FORM_DIRECT,
    FORM_PAP_DIRECT,
    FORM_SHM_DIRECT,
    FORM_PAP_SHM_DIRECT,
    FORM_AUTO,
    FORM_BRUCK,
    FORM_PAP_BRUCK,
    FORM_DOUBLING,
    FORM_PAP_DOUBLING,
    ARRIVAL_FORMS,
    FORM_NEXT = ARRIVAL_FORMS /* in a table: the operation is left to the next component */
};
static inline bool arrival_form_by_leaders(enum arrival_form form)
{
    return form == FORM_SHM_DIRECT || form == FORM_PAP_SHM_DIRECT;
}
static inline bool arrival_form_has_nodes(enum arrival_form form)
{
    return arrival_form_by_leaders(form) || form == FORM_AUTO;
}
static inline bool arrival_form_has_rounds(enum arrival_form form)
{
    return form >= FORM_BRUCK && form < ARRIVAL_FORMS;
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

/* A line of a user's table (table.h): what it is for, and the form. */
struct arrival_rule {
    strata_coll_kind_t kind;
    int ranks, nodes; /* up to so many; INT_MAX: any number */
    size_t bytes;     /* of a block, up to; SIZE_MAX: any */
    uint64_t skew_us; /* of the calls before, up to, rounded up to a power of two; UINT64_MAX: any */
    enum arrival_form form;
};

/* Facts that the choice rests on, besides the call: the same at all members. */
struct arrival_choice {
    enum arrival_form form; /* of all calls, if it is not FORM_AUTO */
    size_t shm_auto;        /* FORM_AUTO: longest block that goes by the leaders of nodes */
    size_t bcast_auto;      /* the same of a bcast */
    size_t allgather_auto;  /* the same of an allgather or allgatherv */
    uint64_t skew_max;      /* us: skew up to which it does (paper, 5.1: leaders wait for all of their node) */
    const struct arrival_rule *rules;
    size_t n_rules;
};

/* defaults.c: where the user has no table. */
enum { ARRIVAL_DEFAULT_RULES = 3 };
extern const struct arrival_rule arrival_default_rules[ARRIVAL_DEFAULT_RULES];

struct arrival_question {
    strata_coll_kind_t kind;
    size_t bytes; /* of a block; 0 where they differ by rank */
    int ranks, nodes;
    unsigned skew; /* class of an earlier call's */
};

/* Whether the first rule for the operation, its size and ranks leaves it to the next component. Nodes and skew are not
 * known when a call starts. */
bool arrival_choose_next(const struct arrival_choice *c, const struct arrival_question *q);
/* The form in rounds that an alltoall may get when it begins, or FORM_NEXT: none. */
enum arrival_form arrival_choose_rounds(const struct arrival_choice *c, const struct arrival_question *q);
/* The form of a call: the one by name, or of the first rule that fits, or the default. Never FORM_AUTO, FORM_NEXT. */
enum arrival_form arrival_choose(const struct arrival_choice *c, const struct arrival_question *q);
/* Bytes of the longest block of that call, which is no bcast, that goes by the leaders of nodes; 0: none does. `agreed`
 * is what the areas have room for. Blocks of an alltoallv or allgatherv go each by their own size. */
size_t arrival_choose_limit(const struct arrival_choice *c, const struct arrival_question *q, size_t agreed);

#endif

/* The machine: memory that it has to spare, and which processors a side and its threads run on. */
#ifndef MIBA_MACHINE_H
#define MIBA_MACHINE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include "status.h"

/* MIBA_SKIPPED, with the reason, when so many bytes are more than three quarters of the memory that is available. */
enum miba_status machine_spares(uint64_t bytes, struct miba_why *why);

/* The first permitted processor other than `but` (-1: any); -1: there is none. */
int machine_processor(const cpu_set_t *permitted, int but);

/* Processors of loaders: all permitted ones but those of both sides, which are -1 where a side is bound to none. A side
 * that sleeps meanwhile leaves them its own; so does a side without any other. */
cpu_set_t machine_loaders(const cpu_set_t *permitted, int own, int other, bool own_sleeps);

#endif

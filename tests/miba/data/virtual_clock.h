/* The clock of virtual_clock.c as virtual_turns.c moves it. */
#ifndef VIRTUAL_CLOCK_H
#define VIRTUAL_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* Nanoseconds of this process; or, from when it points elsewhere, of several. */
extern atomic_uint_least64_t *virtual_now;
/* Nanoseconds of this thread while it has a time of its own; 0: it has none. */
extern _Thread_local uint64_t virtual_own;

#endif

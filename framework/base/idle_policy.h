/* How long a waiting thread spins and yields before it sleeps: decided once per context. */
#ifndef ST_BASE_IDLE_POLICY_H
#define ST_BASE_IDLE_POLICY_H

#include <strata/sdk/component.h>

/* A yield that takes longer, ns, gave the processor to somebody who computes: as soon as a slice of such a one is over
 * the caller has its turn, but not when its message comes. Who sleeps is woken by that. */
#define ST_YIELD_LONG_NS 1000000u
/* Yields. What that took, ns, if it was longer, else 0. */
uint64_t st_yield_long(void);

/* Processors that the ranks of this job may share on this machine, as far as one of them can tell. At least 1. */
unsigned st_idle_processors(void);

/* Pure: resolves mca_base_spin and mca_base_yield (-1: choose). */
void st_idle_policy(int64_t spin, int64_t yield, unsigned n_local, unsigned n_processors, uint32_t *spin_limit,
                    uint32_t *yield_limit);

#endif

/* Two threads of each rank with collectives at the same time, each on a communicator of its own. */
#ifndef TESTS_SUPPORT_COLL_HALVES_H
#define TESTS_SUPPORT_COLL_HALVES_H

#include <pthread.h>
#include "support/over_transports.h"

struct half {
    strata_comm_t *comm;
    int number; /* 0 or 1 */
};

/* Runs `calls` with a struct half on two threads; the communicators have the ids `first_id` and the next. */
static inline void run_halves(struct tw_rank *r, uint32_t first_id, void *(*calls)(void *half))
{
    struct half h[2];
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        strata_comm_spec_t spec = {
            .size = sizeof(spec), .id = first_id + (uint32_t)i, .rank = r->rank, .n_ranks = r->n, .world = NULL};
        h[i].number = i;
        CHECK_OK(strata_comm_create(r->s, &spec, &h[i].comm));
    }
    CHECK(pthread_create(&thread, NULL, calls, &h[0]) == 0);
    calls(&h[1]);
    pthread_join(thread, NULL);
    tw_quiesce(r);
    for (int i = 0; i < 2; i++)
        CHECK_OK(strata_comm_free(h[i].comm));
}

#endif

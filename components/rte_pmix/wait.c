/* Waiting for an answer of PMIx's progress thread, with a bound and without using the processor. */
#include "rte_pmix.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <strata/sdk/clock.h>

enum { LOOK_MS = 100 }; /* a look at an answer lasts at most so long */

struct rte_pmix_wait *rte_pmix_wait_create(void)
{
    struct rte_pmix_wait *w = calloc(1, sizeof(*w));
    pthread_condattr_t attr;
    if (!w)
        return NULL;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
    w->refs = 2;
    return w;
}

void rte_pmix_wait_put(struct rte_pmix_wait *w)
{
    pthread_mutex_lock(&w->lock);
    int left = --w->refs;
    pthread_mutex_unlock(&w->lock);
    if (left > 0)
        return;
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->cond);
    free(w->blob);
    free(w);
}

void rte_pmix_wait_answer(struct rte_pmix_wait *w, pmix_status_t rc)
{
    pthread_mutex_lock(&w->lock);
    w->rc = rc;
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
    rte_pmix_wait_put(w);
}

pmix_status_t rte_pmix_wait_for(struct rte_pmix_wait *w, int64_t timeout_s)
{
    struct timespec until;
    int err = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)timeout_s;
    pthread_mutex_lock(&w->lock);
    while (!w->done && err != ETIMEDOUT)
        err = timeout_s ? pthread_cond_timedwait(&w->cond, &w->lock, &until) : pthread_cond_wait(&w->cond, &w->lock);
    pmix_status_t rc = w->done ? w->rc : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

pmix_status_t rte_pmix_wait_counted(struct rte_pmix_wait *w, int64_t *left_ms)
{
    pthread_mutex_lock(&w->lock);
    while (!w->done && (!left_ms || *left_ms > 0)) {
        int64_t begin = st_now_ms(), spent;
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        (void)pthread_cond_timedwait(&w->cond, &w->lock, &until);
        spent = st_now_ms() - begin;
        if (left_ms)
            *left_ms -= spent < LOOK_MS ? spent : LOOK_MS;
    }
    pmix_status_t rc = w->done ? w->rc : PMIX_ERR_TIMEOUT;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

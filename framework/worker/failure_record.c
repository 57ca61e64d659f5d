/* News of failed peers, recorded. They come on any thread, perhaps from inside a BTL's op with the lock held; progress
 * deals with them (failure.c). */
#include <stdio.h>
#include <stdlib.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/worker/worker.h"

void st_worker_peer_failed(struct st_worker *head, int rank, int rc, const char *reason)
{
    struct worker *w = worker_of(head);
    struct worker_failure *f = malloc(sizeof(*f));
    if (!f || rank < 0 || rank >= head->context->rte->size) {
        free(f);
        return;
    }
    f->rank = rank;
    f->rc = rc == STRATA_OK ? STRATA_ERR_PEER : rc;
    snprintf(f->reason, sizeof(f->reason), "%s", reason ? reason : "");
    pthread_mutex_lock(&w->alarm_mutex);
    bool repeated = false;
    for (const struct worker_failure *known = w->failures; known && !repeated; known = known->next)
        repeated = known->rank == rank;
    if (!repeated) {
        f->next = w->failures;
        w->failures = f;
    }
    pthread_mutex_unlock(&w->alarm_mutex);
    /* All messages that wait for a peer may report it in one round; the count in `attention` has 16 bits. */
    if (repeated) {
        free(f);
        return;
    }
    /* Pairs with the acquire in st_worker_attend_all: who sees the count finds the entry. */
    atomic_fetch_add_explicit(&head->attention, ST_ATTEND_FAILURE, memory_order_release);
    st_worker_wake(head);
}

/* Recorded failures, oldest first: the first reason of a rank is the one that counts. */
struct worker_failure *worker_failures_take(struct worker *w)
{
    struct worker_failure *newest, *f, *list = NULL;
    pthread_mutex_lock(&w->alarm_mutex);
    newest = w->failures;
    w->failures = NULL;
    pthread_mutex_unlock(&w->alarm_mutex);
    while ((f = newest) != NULL) {
        newest = f->next;
        f->next = list;
        list = f;
    }
    return list;
}

/* Failed peers: a round of progress tells lane and clients, with the lock held, and afterwards log and embedder,
 * without it: the embedder may call back. */
#include <stdio.h>
#include <stdlib.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/worker/lane.h"

#define QUIET_POLLS 64   /* in a row that find nothing: nothing is left */
#define MOST_POLLS  4096 /* others may go on sending */

static void failure_from_btl(void *arg, int rank, int rc, const char *reason)
{
    st_worker_peer_failed(arg, rank, rc, reason);
}

static void failure_from_rte(void *arg, int rank, const char *reason)
{
    st_worker_peer_failed(arg, rank, STRATA_ERR_PEER, reason);
}

static void failure_path_from_btl(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason)
{
    struct worker *w = arg;
    if (!lane_path_failed(w, ep, reason ? reason : ""))
        st_worker_peer_failed(&w->head, ep->rank, rc, reason);
}

void st_worker_watch(struct st_worker *w)
{
    struct st_rte *rte = w->context->rte;
    for (size_t i = 0; i < w->bml->n_btls; i++) {
        w->bml->btls[i]->peer_failed = failure_from_btl;
        w->bml->btls[i]->path_failed = failure_path_from_btl;
        w->bml->btls[i]->peer_failed_arg = w;
    }
    if (rte->ops->watch)
        rte->ops->watch(rte, failure_from_rte, w);
}

/* A module may look at some of its queues now and then only. */
void worker_take_what_came(const struct worker *w)
{
    int quiet = 0;
    for (int i = 0; i < MOST_POLLS && quiet < QUIET_POLLS; i++) {
        quiet = st_worker_poll_modules(&w->head) ? 0 : quiet + 1;
    }
}

/* The lane first, then the clients, then what they have queued. False: not the first failure of that rank. Without
 * memory for the peer the failure is reported all the same, and perhaps again. */
static bool failure_of_peer(struct worker *w, const struct worker_failure *f)
{
    struct st_peer *peer;
    if (st_worker_peer(&w->head, f->rank, &peer) != STRATA_OK)
        return true;
    if (peer->failed)
        return false;
    peer->failed = f->rc;
    w->head.n_failed++;
    if (peer->lane)
        lane_peer_failed(peer->lane);
    for (unsigned am = 0; am < ST_AM_CLIENTS; am++) {
        const struct st_client *c = w->clients[am].row;
        if (c && c->peer_failed)
            c->peer_failed(w->clients[am].arg, peer);
    }
    worker_pending_drop(w, peer);
    return true;
}

int worker_failures_handle(struct worker *w)
{
    int n = 0;
    worker_take_what_came(w);
    struct worker_failure *list = worker_failures_take(w), *f, **last;
    while ((f = list) != NULL) {
        list = f->next;
        atomic_fetch_sub_explicit(&w->head.attention, ST_ATTEND_FAILURE, memory_order_relaxed);
        n++;
        if (!failure_of_peer(w, f)) {
            free(f);
            continue;
        }
        f->next = NULL;
        for (last = &w->to_report; *last; last = &(*last)->next)
            ;
        *last = f;
        st_worker_news(&w->head);
    }
    return n;
}

static void failure_report(struct worker *w, const struct worker_failure *f)
{
    strata_t *s = w->head.context;
    atomic_store_explicit(&w->any_reported, true, memory_order_relaxed);
    st_log(s, ST_LOG_ERROR, NULL, "rank %d on host %s failed: %s%s%s", f->rank, s->rte->ops->host_of(s->rte, f->rank),
           strata_strerror(f->rc), f->reason[0] ? ": " : "", f->reason);
    if (s->host && s->host->peer_failed)
        s->host->peer_failed(s->host->user, f->rank, f->rc, f->reason);
}

void st_worker_tell_failures(struct st_worker *head)
{
    struct worker *w = worker_of(head);
    struct worker_failure *list, *f;
    st_worker_lock(head);
    if (atomic_load_explicit(&head->attention, memory_order_acquire) >= ST_ATTEND_FAILURE)
        (void)worker_failures_handle(w);
    list = w->to_report;
    w->to_report = NULL;
    st_worker_unlock(head);
    while ((f = list) != NULL) {
        list = f->next;
        failure_report(w, f);
        free(f);
    }
}

void worker_failures_destroy(struct worker *w)
{
    struct worker_failure *f;
    while ((f = w->failures) != NULL || (f = w->to_report) != NULL) {
        if (f == w->failures)
            w->failures = f->next;
        else
            w->to_report = f->next;
        free(f);
    }
}

bool st_worker_any_failed(const struct st_worker *head)
{
    return atomic_load_explicit(&((const struct worker *)head)->any_reported, memory_order_relaxed);
}

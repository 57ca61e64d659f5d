/* News of dead peers. They come on any thread, perhaps from inside a BTL's op: that only records them. The next round
 * of progress tells the clients, with the lock held, and afterwards log and embedder, without it: the embedder may call
 * back. */
#include <stdio.h>
#include <stdlib.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/worker/worker.h"

#define QUIET_POLLS 64   /* in a row that find nothing: nothing is left */
#define MOST_POLLS  4096 /* others may go on sending */

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
    snprintf(f->reason, sizeof(f->reason), "%s", reason && reason[0] ? reason : strata_strerror(f->rc));
    pthread_mutex_lock(&w->alarm_mutex);
    f->next = w->failures;
    w->failures = f;
    pthread_mutex_unlock(&w->alarm_mutex);
    /* Pairs with the acquire in st_worker_attend_all: who sees the count finds the entry. */
    atomic_fetch_add_explicit(&head->attention, ST_ATTEND_FAILURE, memory_order_release);
}

static void from_btl(void *arg, int rank, int rc, const char *reason)
{
    st_worker_peer_failed(arg, rank, rc, reason);
}

static void from_rte(void *arg, int rank, const char *reason)
{
    st_worker_peer_failed(arg, rank, STRATA_ERR_PEER, reason);
}

static void path_from_btl(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason)
{
    struct worker *w = arg;
    bool others = false;
    for (unsigned am = 0; am < ST_AM_COUNT; am++) {
        const struct st_client *c = w->clients[am].row;
        if (c && c->path_failed)
            others |= c->path_failed(w->clients[am].arg, ep, rc, reason ? reason : "");
    }
    if (!others)
        st_worker_peer_failed(&w->head, ep->rank, rc, reason);
}

void st_worker_watch(struct st_worker *w)
{
    struct st_rte *rte = w->context->rte;
    for (size_t i = 0; i < w->bml->n_btls; i++) {
        w->bml->btls[i]->peer_failed = from_btl;
        w->bml->btls[i]->path_failed = path_from_btl;
        w->bml->btls[i]->peer_failed_arg = w;
    }
    if (rte->ops->watch)
        rte->ops->watch(rte, from_rte, w);
}

/* What a peer sent before its end may have come after our last poll, and the news of its end at once behind it: a
 * receive is not failed for which there is a message. A module may look at some of its queues now and then only. */
static void take_what_came(const struct worker *w)
{
    int quiet = 0;
    for (int i = 0; i < MOST_POLLS && quiet < QUIET_POLLS; i++) {
        int n = 0;
        for (const struct st_worker_poll *p = w->poll; p->progress; p++)
            n += p->progress(p->btl);
        quiet = n ? 0 : quiet + 1;
    }
}

/* True the first time for a rank. When no memory is left for remembering it, the rank may be told of again. */
static bool first_time(struct worker *w, int rank)
{
    for (size_t i = 0; i < w->n_told; i++)
        if (w->told[i] == rank)
            return false;
    int *told = realloc(w->told, (w->n_told + 1) * sizeof(*told));
    if (told) {
        told[w->n_told++] = rank;
        w->told = told;
    }
    w->head.n_failed++;
    return true;
}

static void tell_clients(struct worker *w, const struct worker_failure *f)
{
    for (unsigned am = 0; am < ST_AM_COUNT; am++) {
        const struct st_client *c = w->clients[am].row;
        if (c && c->peer_failed)
            c->peer_failed(w->clients[am].arg, f->rank, f->rc);
    }
}

int worker_failures_handle(struct worker *w)
{
    struct worker_failure *list, *f;
    int n = 0;
    take_what_came(w);
    pthread_mutex_lock(&w->alarm_mutex);
    list = w->failures;
    w->failures = NULL;
    pthread_mutex_unlock(&w->alarm_mutex);
    while ((f = list) != NULL) {
        list = f->next;
        atomic_fetch_sub_explicit(&w->head.attention, ST_ATTEND_FAILURE, memory_order_relaxed);
        n++;
        if (!first_time(w, f->rank)) {
            free(f);
            continue;
        }
        tell_clients(w, f);
        f->next = w->to_report;
        w->to_report = f;
        w->head.reports = true;
    }
    return n;
}

static void report(struct worker *w, const struct worker_failure *f)
{
    strata_t *s = w->head.context;
    atomic_store_explicit(&w->any_reported, true, memory_order_relaxed);
    st_log(s, ST_LOG_ERROR, NULL, "rank %d on host %s failed: %s: %s", f->rank, s->rte->ops->host_of(s->rte, f->rank),
           strata_strerror(f->rc), f->reason);
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
    head->reports = false;
    st_worker_unlock(head);
    while ((f = list) != NULL) {
        list = f->next;
        report(w, f);
        free(f);
    }
}

bool st_worker_any_failed(const struct st_worker *head)
{
    return atomic_load_explicit(&((const struct worker *)head)->any_reported, memory_order_relaxed);
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
    free(w->told);
}

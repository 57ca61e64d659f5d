/* News of dead peers. They come on any thread, perhaps from inside a BTL's op, and go to the PML, which completes the
 * requests concerned and then calls st_peer_failed; that tells log and embedder, once per rank. */
#include "framework/base/peer_failed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"

struct st_failures {
    pthread_mutex_t lock; /* taken before any lock of the PML's, held by no caller of the PML's ops */
    bool listening;       /* the PML is open */
    int *told;            /* ranks already reported */
    size_t n_told;
    _Atomic(bool) any;
};

void st_failures_news(strata_t *s, int rank, int rc, const char *reason)
{
    struct st_failures *f = s->failures;
    pthread_mutex_lock(&f->lock);
    bool listening = f->listening;
    if (listening)
        s->pml->ops->peer_failed(s->pml, rank, rc, reason ? reason : "");
    pthread_mutex_unlock(&f->lock);
}

static void from_btl(void *arg, int rank, int rc, const char *reason)
{
    st_failures_news(arg, rank, rc, reason);
}

static void path_from_btl(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason)
{
    strata_t *s = arg;
    struct st_failures *f = s->failures;

    if (!s->pml)
        return; /* nobody listens yet, or any more */
    if (!s->pml->ops->path_failed) {
        st_failures_news(s, ep->rank, rc, reason);
        return;
    }
    pthread_mutex_lock(&f->lock);
    if (f->listening)
        s->pml->ops->path_failed(s->pml, ep, rc, reason ? reason : "");
    pthread_mutex_unlock(&f->lock);
}

static void from_rte(void *arg, int rank, const char *reason)
{
    st_failures_news(arg, rank, STRATA_ERR_PEER, reason);
}

int st_failures_create(strata_t *s)
{
    struct st_failures *f = calloc(1, sizeof(*f));
    if (!f)
        return STRATA_ERR_NOMEM;
    pthread_mutex_init(&f->lock, NULL);
    s->failures = f;
    return STRATA_OK;
}

void st_failures_destroy(strata_t *s)
{
    struct st_failures *f = s->failures;
    if (!f)
        return;
    pthread_mutex_destroy(&f->lock);
    free(f->told);
    free(f);
    s->failures = NULL;
}

void st_failures_start(strata_t *s)
{
    for (size_t i = 0; i < s->n_btls; i++) {
        s->btls[i]->peer_failed = from_btl;
        s->btls[i]->path_failed = path_from_btl;
        s->btls[i]->peer_failed_arg = s;
    }
    pthread_mutex_lock(&s->failures->lock);
    s->failures->listening = true;
    pthread_mutex_unlock(&s->failures->lock);
    if (s->rte->ops->watch)
        s->rte->ops->watch(s->rte, from_rte, s);
}

void st_failures_stop(strata_t *s)
{
    pthread_mutex_lock(&s->failures->lock);
    s->failures->listening = false;
    pthread_mutex_unlock(&s->failures->lock);
}

/* True the first time for a rank. When no memory is left for remembering it, the rank may be reported again. */
static bool first_time(struct st_failures *f, int rank)
{
    bool first = true;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_told && first; i++)
        first = f->told[i] != rank;
    if (first) {
        int *told = realloc(f->told, (f->n_told + 1) * sizeof(*told));
        if (told) {
            told[f->n_told++] = rank;
            f->told = told;
        }
    }
    pthread_mutex_unlock(&f->lock);
    return first;
}

void st_peer_failed(strata_t *s, int rank, int rc, const char *reason)
{
    if (!first_time(s->failures, rank))
        return;
    atomic_store_explicit(&s->failures->any, true, memory_order_relaxed);
    st_log(s, ST_LOG_ERROR, NULL, "rank %d on host %s failed: %s%s%s", rank, s->rte->ops->host_of(s->rte, rank),
           strata_strerror(rc), reason && reason[0] ? ": " : "", reason ? reason : "");
    if (s->host && s->host->peer_failed)
        s->host->peer_failed(s->host->user, rank, rc, reason ? reason : "");
}

bool st_failures_any(const strata_t *s)
{
    return atomic_load_explicit(&s->failures->any, memory_order_relaxed);
}

/* What both ends of a landing ring have: memory, registration, work that waits for the transport. */
#include <stdlib.h>
#include <string.h>

#include "framework/worker/landing_end.h"
#include "framework/worker/worker.h"

#define HEAP_ALIGNMENT 4096u

static bool end_from_pool(struct landing_memory *m, struct st_mpool *pool, bool shared)
{
    size_t got;

    if (shared && pool->ops->alloc_shared(pool, m->length, &m->piece) == STRATA_OK) {
        m->at = m->piece.memory;
        m->source = LANDING_SHARED;
    } else if ((m->at = pool->ops->alloc(pool, m->length, &got)) != NULL) {
        m->length = got;
        m->source = LANDING_POOL;
    }
    return m->source != LANDING_NONE;
}

static int end_allocate(struct landing_memory *m, struct st_mpool *pool, bool shared)
{
    if (pool && end_from_pool(m, pool, shared))
        return STRATA_OK;
    m->length = (m->length + HEAP_ALIGNMENT - 1) / HEAP_ALIGNMENT * HEAP_ALIGNMENT;
    m->at = aligned_alloc(HEAP_ALIGNMENT, m->length);
    if (!m->at)
        return STRATA_ERR_NOMEM;
    memset(m->at, 0, m->length); /* no bytes of this process for the peer */
    m->source = LANDING_HEAP;
    return STRATA_OK;
}

static void end_free(struct landing_memory *m, struct st_mpool *pool)
{
    if (m->registered)
        m->btl->rdma->dereg(m->btl, &m->reg);
    if (m->source == LANDING_SHARED)
        pool->ops->free_shared(pool, &m->piece);
    else if (m->source == LANDING_POOL)
        pool->ops->free(pool, m->at, m->length);
    else if (m->source == LANDING_HEAP)
        free(m->at);
    *m = (struct landing_memory){0};
}

static int end_run(void *arg, struct st_work *work)
{
    struct landing_end *end = ST_CONTAINER(work, struct landing_end, work);
    int rc = end->again(end);

    (void)arg;
    end->queued = rc == STRATA_ERR_AGAIN;
    return rc;
}

static void end_drop(void *arg, struct st_work *work, int rc)
{
    struct landing_end *end = ST_CONTAINER(work, struct landing_end, work);

    (void)arg;
    end->queued = false;
    end->fail(end, rc);
}

static const struct st_work_ops end_work[] = {[ST_AM_PML] = {ST_AM_PML, end_run, end_drop},
                                              [ST_AM_STREAM] = {ST_AM_STREAM, end_run, end_drop},
                                              [ST_AM_COLL] = {ST_AM_COLL, end_run, end_drop},
                                              [ST_AM_TEST] = {ST_AM_TEST, end_run, end_drop}};
_Static_assert(sizeof(end_work) / sizeof(end_work[0]) == ST_AM_CLIENTS, "one for each client");

/* A path that comes back is as bad: what was on its way is lost. The client is told in between. */
static int end_lost(const struct landing_end *end)
{
    const struct st_peer *peer = end->where.peer;

    if (peer->failed)
        return peer->failed;
    return peer->bml->paths[end->where.path].weight == 0 ? STRATA_ERR_PEER : STRATA_OK;
}

int landing_end_changed(struct landing_end *end)
{
    end->prepared = 0;
    return end_lost(end);
}

int landing_end_open(struct landing_end *end, const struct st_landing_where *where, size_t length, bool shared,
                     size_t others)
{
    struct worker *w = worker_of(where->worker);
    struct st_mpool *pool = st_mpool(where->worker->context);

    if ((unsigned)where->am >= ST_AM_CLIENTS || !where->peer->bml || where->path >= where->peer->bml->n_paths)
        return STRATA_ERR_ARG;
    end->where = *where;
    int rc = end_lost(end);
    if (rc != STRATA_OK)
        return rc;
    end->memory = (struct landing_memory){.length = length, .btl = st_peer_path(where->peer, where->path)->btl};
    end->work = (struct st_work){.ops = &end_work[where->am], .path = where->path, .rdma = true};
    rc = end_allocate(&end->memory, pool, shared);
    if (rc == STRATA_OK) {
        rc = end->memory.btl->rdma->reg(end->memory.btl, end->memory.at, end->memory.length,
                                        shared ? ST_BTL_ANY_USE : ST_BTL_SOURCE, &end->memory.reg);
        end->memory.registered = rc == STRATA_OK;
    }
    if (rc != STRATA_OK) {
        end_free(&end->memory, pool);
        return rc;
    }
    end->bytes = end->memory.length + others;
    w->landing_bytes += end->bytes;
    return STRATA_OK;
}

static bool end_is_quiet(void *arg)
{
    struct landing_end *end = arg;

    st_worker_lock(end->where.worker);
    bool quiet = end->n_busy == 0;
    st_worker_unlock(end->where.worker);
    return quiet;
}

void landing_end_close(struct landing_end *end)
{
    struct st_worker *w = end->where.worker;

    st_worker_lock(w);
    end->fail(end, STRATA_ERR_STATE); /* nothing new begins */
    if (end->queued)
        st_list_remove(&end->work.node);
    end->queued = false;
    st_worker_unlock(w);
    st_worker_wait(w, end_is_quiet, end);
    st_worker_lock(w);
    end_free(&end->memory, st_mpool(w->context));
    worker_of(w)->landing_bytes -= end->bytes;
    st_worker_unlock(w);
}

void landing_end_starved(struct landing_end *end, bool starved)
{
    if (ST_LIKELY(!starved || end->queued))
        return;
    end->queued = true;
    st_worker_queue(end->where.worker, end->where.peer, ST_WORK_REST, &end->work);
}

int landing_end_put(struct landing_end *end, uint32_t which, const struct st_notify_put *put, struct st_notify *n)
{
    const struct st_landing_where *at = &end->where;

    if (ST_UNLIKELY(!(end->prepared >> which & 1))) {
        int rc = st_notify_prepare(n, at->worker, at->peer, at->path, at->am);
        if (rc != STRATA_OK)
            return rc;
        end->prepared |= 1u << which;
    }
    end->n_busy++;
    int rc = st_notify_start(n, put);
    if (rc != STRATA_OK)
        end->n_busy--;
    return rc;
}

void landing_end_log(struct landing_end *end, int rc, const char *why)
{
    if (ST_LIKELY(rc != STRATA_ERR_PROTOCOL || end->logged))
        return;
    end->logged = true;
    st_log(end->where.worker->context, ST_LOG_WARN, "worker", "a landing ring with rank %d is broken: %s",
           end->where.peer->rank, why ? why : "?");
}

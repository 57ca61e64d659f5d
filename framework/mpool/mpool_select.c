/* Selection of the mpool, when memory is first asked of it: the first that opens. */
#include "framework/mpool/mpool_select.h"

#include <pthread.h>
#include <stdlib.h>

#include "framework/base/context.h"
#include "framework/base/select.h"

static bool mpool_sane(const struct st_mpool *pool)
{
    const struct st_mpool_ops *o = pool->ops;
    return o && o->alloc && o->free && o->alloc_shared && o->free_shared && o->find_shared && o->close && pool->page &&
           (pool->page & (pool->page - 1)) == 0;
}

static int mpool_open(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_mpool_component_ops *ops = c->component->ops;
    struct st_mpool *pool = NULL;
    int rc = ops->open(s, c->component, c->config, &pool);
    (void)arg;
    if (rc != STRATA_OK)
        return rc;
    if (!mpool_sane(pool)) {
        st_reject(s, c->component, "breaks the mpool contract: an operation or the size of a page is missing");
        if (pool->ops && pool->ops->close)
            pool->ops->close(pool);
        return STRATA_ERR_UNSUPPORTED;
    }
    s->mpool = pool;
    s->mpool_component = c->component;
    s->mpool_by_name = c->by_name;
    return STRATA_OK;
}

static int mpool_choose(strata_t *s)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    int rc = st_mca_candidates(s->mca, "mpool", sizeof(struct st_mpool_component_ops), &c, &n);
    free(c);
    if (rc != STRATA_OK || n == 0)
        return rc;
    return st_select_one(s, "mpool", sizeof(struct st_mpool_component_ops), mpool_open, NULL);
}

/* Threads may ask for the first memory at the same time; of any context, as this happens once in each. */
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;

int st_mpool_select(strata_t *s)
{
    if (st_mca_waits(s->mca, "mpool"))
        return STRATA_OK;
    atomic_store_explicit(&s->mpool_settled, true, memory_order_release);
    return mpool_choose(s);
}

struct st_mpool *st_mpool(strata_t *s)
{
    if (atomic_load_explicit(&s->mpool_settled, memory_order_acquire)) /* each registration of memory asks */
        return s->mpool;
    pthread_mutex_lock(&choosing);
    if (!atomic_load_explicit(&s->mpool_settled, memory_order_relaxed)) {
        if (!s->mpool && s->mca) /* a test's context may have a pool and no components */
            (void)mpool_choose(s);
        atomic_store_explicit(&s->mpool_settled, true, memory_order_release);
    }
    pthread_mutex_unlock(&choosing);
    return s->mpool;
}

void st_mpool_close(strata_t *s)
{
    if (s->mpool)
        s->mpool->ops->close(s->mpool);
    s->mpool = NULL;
}

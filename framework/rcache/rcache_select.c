/* Selection of the rcache: one that keeps registrations is a danger where nobody tells it that memory went away. */
#include "framework/rcache/rcache_select.h"

#include <stdlib.h>
#include <string.h>

#include "framework/base/context.h"
#include "framework/base/select.h"
#include "framework/memory/memory_select.h"
#include "framework/memory/monitor.h"

/* What reports of memory events go to. */
struct st_rcache_ear {
    struct st_memory_listener base;
    struct st_rcache *cache;
};

static void rcache_gone(struct st_memory_listener *listener, uintptr_t from, uintptr_t to)
{
    struct st_rcache *cache = ((struct st_rcache_ear *)listener)->cache;
    cache->ops->invalidate(cache, from, to);
}

static void rcache_about_to_fork(struct st_memory_listener *listener)
{
    struct st_rcache *cache = ((struct st_rcache_ear *)listener)->cache;
    if (cache->ops->before_fork)
        cache->ops->before_fork(cache);
}

static bool rcache_sane(const struct st_rcache *cache)
{
    const struct st_rcache_ops *o = cache->ops;
    return o && o->attach && o->detach && o->get && o->put && o->invalidate && o->apply && o->flush && o->counters &&
           o->mem_report && o->close && cache->page && (cache->page & (cache->page - 1)) == 0;
}

/* Has the cache told of memory that goes away; without memory for that it stays blind. */
static bool rcache_listen(strata_t *s, struct st_rcache *cache)
{
    struct st_rcache_ear *ear = malloc(sizeof(*ear));
    if (!ear)
        return false;
    *ear = (struct st_rcache_ear){.base = {rcache_gone, rcache_about_to_fork}, .cache = cache};
    if (st_memory_subscribe(&ear->base) != STRATA_OK) {
        free(ear);
        return false;
    }
    cache->memory = s->memory;
    s->ear = ear;
    return true;
}

static int rcache_open(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_rcache_component_ops *ops = c->component->ops;
    struct st_rcache *cache = NULL;
    int rc;
    (void)arg;
    /* A source is only started for a cache that needs one. */
    if (ops->keeps && (rc = st_memory_select(s)) != STRATA_OK)
        return rc;
    if (ops->keeps && !s->memory && !c->by_name) {
        st_reject(s, c->component, "nothing in this process tells it when memory goes away");
        return STRATA_ERR_UNSUPPORTED;
    }
    if ((rc = ops->open(s, c->component, c->config, &cache)) != STRATA_OK)
        return rc;
    if (!rcache_sane(cache)) {
        st_reject(s, c->component, "breaks the rcache contract: an operation or the size of a page is missing");
        if (cache->ops && cache->ops->close)
            cache->ops->close(cache);
        return STRATA_ERR_UNSUPPORTED;
    }
    if (ops->keeps && s->memory && !rcache_listen(s, cache)) {
        st_reject(s, c->component, "too many contexts of this process keep registrations");
        cache->ops->close(cache);
        return STRATA_ERR_UNSUPPORTED;
    }
    if (ops->keeps && !s->memory && s->rte->rank == 0)
        st_log(s, ST_LOG_WARN, "rcache",
               "%s was asked for, and nothing tells it when memory goes away: a program that gives memory back to the "
               "system between messages may send or receive wrong data",
               c->component->name);
    s->rcache = cache;
    s->rcache_component = c->component;
    return STRATA_OK;
}

static int rcache_choose(strata_t *s)
{
    s->rcache_needed = true;
    return st_select_one(s, "rcache", sizeof(struct st_rcache_component_ops), rcache_open, NULL);
}

struct st_rcache *st_rcache(strata_t *s)
{
    return s->rcache || rcache_choose(s) == STRATA_OK ? s->rcache : NULL;
}

static int rcache_candidates(strata_t *s, const char *framework, uint32_t ops_size, bool *named, bool unused)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    if (st_mca_waits(s->mca, framework))
        return STRATA_OK;
    int rc = st_mca_candidates(s->mca, framework, ops_size, &c, &n);
    for (size_t i = 0; rc == STRATA_OK && i < n; i++) {
        *named = *named || c[i].by_name;
        if (unused)
            st_mca_fate(s->mca, c[i].component, ST_FATE_UNUSED, "no transport in use registers memory and keeps it");
    }
    free(c);
    return rc;
}

int st_rcache_prepare(strata_t *s)
{
    bool named = st_memory_named(s);
    int rc = rcache_candidates(s, "rcache", sizeof(struct st_rcache_component_ops), &named, false);
    if (rc == STRATA_OK && !named)
        return rc;
    if (st_memory_named(s) && (rc = st_memory_select(s)) != STRATA_OK)
        return rc;
    return rcache_choose(s);
}

void st_rcache_settle(strata_t *s)
{
    bool named = false;
    if (!s->rcache_needed)
        (void)rcache_candidates(s, "rcache", sizeof(struct st_rcache_component_ops), &named, true);
    if (!s->memory_chosen)
        (void)rcache_candidates(s, "memory", sizeof(struct st_memory_component_ops), &named, true);
}

void st_rcache_close(strata_t *s)
{
    if (s->ear)
        st_memory_unsubscribe(&s->ear->base);
    free(s->ear);
    s->ear = NULL;
    if (s->rcache)
        s->rcache->ops->close(s->rcache);
    s->rcache = NULL;
}

bool st_rcache_keeps(const strata_t *s)
{
    return ((const struct st_rcache_component_ops *)s->rcache_component->ops)->keeps;
}

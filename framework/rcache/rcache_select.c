/* Selection of the rcache: one that keeps registrations is a danger where nobody tells it that memory went away. */
#include "framework/rcache/rcache_select.h"

#include <string.h>

#include "framework/base/context.h"
#include "framework/base/select.h"

static bool sane(const struct st_rcache *cache)
{
    const struct st_rcache_ops *o = cache->ops;
    return o && o->attach && o->detach && o->get && o->put && o->invalidate && o->apply && o->flush && o->counters &&
           o->mem_report && o->close && cache->page && (cache->page & (cache->page - 1)) == 0;
}

static int open_rcache(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_rcache_component_ops *ops = c->component->ops;
    const bool *told = arg;
    struct st_rcache *cache = NULL;
    bool blind = ops->keeps && !*told;
    if (blind && !c->by_name) {
        st_reject(s, c->component, "nothing in this process tells it when memory goes away");
        return STRATA_ERR_UNSUPPORTED;
    }
    int rc = ops->open(s, c->component, c->config, &cache);
    if (rc != STRATA_OK)
        return rc;
    if (!sane(cache)) {
        st_reject(s, c->component, "breaks the rcache contract: an operation or the size of a page is missing");
        if (cache->ops && cache->ops->close)
            cache->ops->close(cache);
        return STRATA_ERR_UNSUPPORTED;
    }
    if (blind && s->rte->rank == 0)
        st_log(s, ST_LOG_WARN, "rcache",
               "%s was asked for, and nothing tells it when memory goes away: a program that gives memory back to the "
               "system between messages may send or receive wrong data",
               c->component->name);
    s->rcache = cache;
    return STRATA_OK;
}

int st_rcache_select(strata_t *s, bool told)
{
    return st_select_one(s, "rcache", sizeof(struct st_rcache_component_ops), open_rcache, &told);
}

struct st_rcache *st_rcache(const strata_t *s)
{
    return s->rcache;
}

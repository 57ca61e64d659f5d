/* Registrations of user memory for put and get: the context's cache makes and undoes them through the two callbacks
 * here, and says how long they live. */
#include "openib.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PATIENCE 20000000u /* ns */

static struct ib_module *module_of(struct st_rcache_client *c)
{
    return ST_CONTAINER(c, struct ib_module, registrar);
}

#define WRITE (ST_RCACHE_LOCAL_WRITE | ST_RCACHE_REMOTE_WRITE)

static struct ibv_mr *with(struct ib_module *m, void *base, size_t len, uint32_t access)
{
    unsigned flags = (access & ST_RCACHE_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0u) |
                     (access & ST_RCACHE_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0u) |
                     (access & ST_RCACHE_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0u);

    return ibv_reg_mr(m->pd, base, len, flags);
}

/* For everything at once, since what is sent is often received into as well. Memory that may only be read cannot be
 * registered for writing, and need not be by who sends it. */
static int make(struct st_rcache_client *c, void *base, size_t len, uint32_t *access, void **handle)
{
    struct ib_module *m = module_of(c);
    uint32_t got = *access | WRITE;
    struct ibv_mr *mr = with(m, base, len, got);

    if (!mr && errno == EFAULT && !(*access & WRITE))
        mr = with(m, base, len, got = *access);
    if (!mr)
        return errno == ENOMEM || errno == EAGAIN ? STRATA_ERR_NOMEM : STRATA_ERR_SYSTEM;
    m->count.registered++;
    *access = got;
    *handle = mr;
    return STRATA_OK;
}

static void unmake(struct st_rcache_client *c, void *handle)
{
    (void)c;
    (void)ibv_dereg_mr(handle);
}

int ib_registrations_open(struct ib_module *m)
{
    int rc;

    m->cache = st_rcache(m->btl.context);
    if (!m->cache)
        return STRATA_ERR_NOT_FOUND;
    m->registrar = (struct st_rcache_client){.name = m->name, .make = make, .unmake = unmake};
    rc = m->cache->ops->attach(m->cache, &m->registrar);
    m->registrar_attached = rc == STRATA_OK;
    return rc;
}

void ib_registrations_close(struct ib_module *m)
{
    if (m->registrar_attached)
        m->cache->ops->detach(m->cache, &m->registrar);
    m->registrar_attached = false;
}

void ib_registrations_apply(struct ib_module *m)
{
    m->cache->ops->apply(m->cache);
}

/* The cache has given up what it could spare. Other transfers may end soon and give theirs back. Not for ever: they may
 * be the peer's, which waits for us in turn. Then the message goes in fragments, through buffers that there are. */
static int refused(struct ib_module *m)
{
    char why[256];

    if (m->reg_refused == 0)
        m->reg_refused = st_now_ns();
    if (st_now_ns() - m->reg_refused < PATIENCE)
        return STRATA_ERR_AGAIN;
    if (!m->reg_warned) {
        errno = ENOMEM;
        ib_explain(m, IB_MRS, "registration of memory", why, sizeof why);
        st_log(m->btl.context, ST_LOG_WARN, "btl_openib", "%s; long messages go in fragments", why);
        m->reg_warned = true;
    }
    return STRATA_ERR_UNSUPPORTED;
}

/* Nothing is mapped in part of it: the program's mistake, which copying would turn into a signal. */
static bool missing(const struct st_rcache *cache, const void *base, size_t len)
{
    unsigned char in_core[256];
    const size_t step = sizeof in_core * cache->page;
    uintptr_t from, to;

    if (st_rcache_round(cache, base, len, &from, &to) != STRATA_OK)
        return true;
    for (; from < to; from += step)
        if (mincore((void *)from, to - from < step ? to - from : step, in_core) != 0 && errno == ENOMEM)
            return true;
    return false;
}

int ib_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out)
{
    struct ib_module *m = ib_module(btl);
    struct st_rcache *cache = ib_module(btl)->cache;
    struct st_rcache_entry *e = NULL;
    struct ib_key key;
    uint32_t access = ST_RCACHE_REMOTE_READ | (use == ST_BTL_SOURCE ? 0 : WRITE);
    int rc = st_rcache_get(cache, &m->registrar, base, len ? len : 1, access, &e);

    if (ST_UNLIKELY(rc != STRATA_OK))
        return rc == STRATA_ERR_NOMEM      ? refused(m)
               : missing(cache, base, len) ? STRATA_ERR_ARG
                                           : STRATA_ERR_UNSUPPORTED;
    m->reg_refused = 0;
    out->handle = e;
    key = (struct ib_key){((const struct ibv_mr *)e->handle)->rkey, m->index};
    memset(out->key, 0, sizeof out->key);
    memcpy(out->key, &key, sizeof key);
    return STRATA_OK;
}

void ib_dereg(struct st_btl *btl, struct st_btl_reg *reg)
{
    struct st_rcache *cache = ib_module(btl)->cache;

    if (!reg->handle)
        return;
    cache->ops->put(cache, reg->handle);
    reg->handle = NULL;
}

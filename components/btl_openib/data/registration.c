/* Registrations of user memory for put and get: the context's cache makes and undoes them through the two callbacks
 * here, and says how long they live. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <strata/sdk/clock.h>
#include "module.h"

#define PATIENCE 20000000u /* ns */

static struct ib_module *registrar_module(struct st_rcache_client *c)
{
    return ST_CONTAINER(c, struct ib_module, registrar.client);
}

#define REG_WRITE (ST_RCACHE_LOCAL_WRITE | ST_RCACHE_REMOTE_WRITE)

static struct ibv_mr *reg_with(struct ib_module *m, void *base, size_t len, uint32_t access)
{
    unsigned flags = (access & ST_RCACHE_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0u) |
                     (access & ST_RCACHE_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0u) |
                     (access & ST_RCACHE_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0u);

    return ibv_reg_mr(m->dev.pd, base, len, flags);
}

/* For everything at once, since what is sent is often received into as well. Memory that may only be read cannot be
 * registered for writing, and need not be by who sends it. */
static int reg_make(struct st_rcache_client *c, void *base, size_t len, uint32_t *access, void **handle)
{
    struct ib_module *m = registrar_module(c);
    uint32_t got = *access | REG_WRITE;
    struct ibv_mr *mr = reg_with(m, base, len, got);

    if (!mr && errno == EFAULT && !(*access & REG_WRITE))
        mr = reg_with(m, base, len, got = *access);
    if (!mr)
        return errno == ENOMEM || errno == EAGAIN ? STRATA_ERR_NOMEM : STRATA_ERR_SYSTEM;
    m->count.registered++;
    *access = got;
    *handle = mr;
    return STRATA_OK;
}

static void reg_unmake(struct st_rcache_client *c, void *handle)
{
    (void)c;
    (void)ibv_dereg_mr(handle);
}

int ib_registrations_open(struct ib_module *m)
{
    int rc;

    m->registrar.cache = st_rcache(m->btl.context);
    if (!m->registrar.cache)
        return STRATA_ERR_NOT_FOUND;
    m->registrar.client = (struct st_rcache_client){.name = m->dev.name, .make = reg_make, .unmake = reg_unmake};
    rc = m->registrar.cache->ops->attach(m->registrar.cache, &m->registrar.client);
    m->registrar.attached = rc == STRATA_OK;
    return rc;
}

void ib_registrations_close(struct ib_module *m)
{
    if (m->registrar.attached)
        m->registrar.cache->ops->detach(m->registrar.cache, &m->registrar.client);
    m->registrar.attached = false;
}

/* The cache has given up what it could spare. Other transfers may end soon and give theirs back. Not for ever: they may
 * be the peer's, which waits for us in turn. Then the message goes in fragments, through buffers that there are. */
static int reg_refused(struct ib_module *m)
{
    char why[256];

    if (m->registrar.refused == 0)
        m->registrar.refused = st_now_ns();
    if (st_now_ns() - m->registrar.refused < PATIENCE)
        return STRATA_ERR_AGAIN;
    if (!m->registrar.warned) {
        errno = ENOMEM;
        ib_init_error(&m->dev, IB_MRS, "registration of memory", why, sizeof why);
        st_log(m->btl.context, ST_LOG_WARN, "btl_openib", "%s; long messages go in fragments", why);
        m->registrar.warned = true;
    }
    return STRATA_ERR_UNSUPPORTED;
}

/* Nothing is mapped in part of it: the program's mistake, which copying would turn into a signal. */
static bool reg_is_unmapped(const struct st_rcache *cache, const void *base, size_t len)
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
    struct st_rcache *cache = ib_module(btl)->registrar.cache;
    struct st_rcache_entry *e = NULL;
    struct ib_key key;
    uint32_t access = ST_RCACHE_REMOTE_READ | (use == ST_BTL_SOURCE ? 0 : REG_WRITE);
    int rc = st_rcache_get(cache, &m->registrar.client, base, len ? len : 1, access, &e);

    if (ST_UNLIKELY(rc != STRATA_OK))
        return rc == STRATA_ERR_NOMEM              ? reg_refused(m)
               : reg_is_unmapped(cache, base, len) ? STRATA_ERR_ARG
                                                   : STRATA_ERR_UNSUPPORTED;
    m->registrar.refused = 0;
    out->handle = e;
    key = (struct ib_key){((const struct ibv_mr *)e->handle)->rkey, m->index};
    memset(out->key, 0, sizeof out->key);
    memcpy(out->key, &key, sizeof key);
    return STRATA_OK;
}

void ib_dereg(struct st_btl *btl, struct st_btl_reg *reg)
{
    struct st_rcache *cache = ib_module(btl)->registrar.cache;

    if (!reg->handle)
        return;
    cache->ops->put(cache, reg->handle);
    reg->handle = NULL;
}

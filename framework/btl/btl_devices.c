/* The modules of a context, for tools: what each says of itself before any peer is known. */
#include <stdlib.h>

#include <strata/sdk/info.h>
#include <strata/sdk/thresholds.h>
#include "framework/base/context.h"
#include "framework/btl/btl_select.h"

const char *st_btl_capability(size_t i, uint32_t *bit)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{ST_BTL_ORDERED, "ordered"},
                 {ST_BTL_GET, "get"},
                 {ST_BTL_PUT, "put"},
                 {ST_BTL_PUT_APART, "puts_apart"},
                 {ST_BTL_NEEDS_REG, "needs_registration"},
                 {ST_BTL_REG_KEPT, "keeps_registrations"},
                 {ST_BTL_REG_CHEAP, "registers_cheaply"},
                 {ST_BTL_MENDS, "mends"},
                 {ST_BTL_KEEP, "keeps_messages"},
                 {ST_BTL_BOTH_TOLD, "both_ends_told"}};
    if (i >= sizeof(names) / sizeof(names[0]))
        return NULL;
    *bit = names[i].bit;
    return names[i].name;
}

static void devices_show(struct st_btl *b, void (*fn)(void *arg, const struct st_info_device *d), void *arg)
{
    struct st_thresholds t;
    st_thresholds_derive(b, &b->facts, &t);
    struct st_info_device d = {.component = b->component->name,
                               .summary = b->component->summary,
                               .eager_limit = b->eager_limit,
                               .stream_limit = t.stream_limit,
                               .max_send = b->max_send,
                               .zcopy_min = t.zcopy_min < UINT32_MAX ? t.zcopy_min : 0,
                               .max_key = b->caps & ST_BTL_NEEDS_REG ? ST_BTL_KEY_MAX : 0,
                               .rdma_min = t.rdma_min < ST_BTL_RDMA_NEVER ? t.rdma_min : 0,
                               .rdma_pipeline = b->rdma_pipeline,
                               .latency_ns = b->facts.latency_ns,
                               .bandwidth_mbs = b->facts.bandwidth_mbs,
                               .exclusivity = b->exclusivity,
                               .needs_registration = (b->caps & ST_BTL_NEEDS_REG) != 0};
    char *own = b->ops->describe(b, NULL);
    const char *name;
    uint32_t bit;
    size_t n = 0;

    for (size_t i = 0; (name = st_btl_capability(i, &bit)) != NULL; i++)
        if (b->caps & bit && n + 1 < sizeof(d.capabilities) / sizeof(*d.capabilities))
            d.capabilities[n++] = name;
    d.own = own ? own : "";
    fn(arg, &d);
    free(own);
}

void st_info_devices(strata_t *s, void (*fn)(void *arg, const struct st_info_device *d), void *arg)
{
    st_context_lock(s);
    for (size_t i = 0; i < s->n_btls; i++)
        devices_show(s->btls[i], fn, arg);
    st_context_unlock(s);
}

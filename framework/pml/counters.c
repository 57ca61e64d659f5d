/* Counters of a context: what PML and transports have counted, and what is registered. */
#include <string.h>

#include "framework/base/context.h"
#include "framework/mca/mca.h"
#include <strata/sdk/info.h>
#include <strata/sdk/rcache.h>

static void lock(strata_t *s)
{
    if (s->pml->ops->lock)
        s->pml->ops->lock(s->pml);
}

static void unlock(strata_t *s)
{
    if (s->pml->ops->unlock)
        s->pml->ops->unlock(s->pml);
}

static void add_registered(void *arg, const strata_mem_line_t *line)
{
    uint64_t *sum = arg;

    if (strcmp(line->category, "registered") == 0)
        *sum += line->bytes;
}

static void of_transport(struct st_btl *btl, void (*fn)(void *arg, const strata_counter_t *c), void *arg)
{
    const char *name = btl->component->name;
    strata_counter_t c = {"btl", name, "messages_sent", "messages", 0, btl->messages_sent};
    uint64_t registered = 0;

    fn(arg, &c);
    c = (strata_counter_t){"btl", name, "bytes_sent", "bytes", 0, btl->bytes_sent};
    fn(arg, &c);
    c = (strata_counter_t){"btl", name, "bytes_got", "bytes", 0, btl->bytes_got};
    fn(arg, &c);
    if (btl->ops->mem_report)
        btl->ops->mem_report(btl, add_registered, &registered);
    c = (strata_counter_t){"btl", name, "registered_bytes", "bytes", 1, registered};
    fn(arg, &c);
}

static void of_cache(strata_t *s, void (*fn)(void *arg, const strata_counter_t *c), void *arg)
{
    struct st_rcache_counters n;

    if (!s->rcache)
        return;
    s->rcache->ops->counters(s->rcache, &n);
    const strata_counter_t lines[] = {
        {"rcache", NULL, "hits", "registrations", 0, n.hits},
        {"rcache", NULL, "misses", "registrations", 0, n.misses},
        {"rcache", NULL, "evictions", "registrations", 0, n.evictions},
        {"rcache", NULL, "invalidations", "registrations", 0, n.invalidations},
        {"rcache", NULL, "overflows", "times", 0, n.overflows},
        {"rcache", NULL, "registrations", "registrations", 1, n.entries},
        {"rcache", NULL, "registered_bytes", "bytes", 1, n.bytes},
        {"rcache", NULL, "registered_bytes_max", "bytes", 0, n.bytes_max},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        strata_counter_t c = lines[i];
        c.component = s->rcache_component->name;
        fn(arg, &c);
    }
}

int strata_counters(strata_t *s, void (*fn)(void *arg, const strata_counter_t *c), void *arg)
{
    if (!s || !fn)
        return STRATA_ERR_ARG;
    lock(s);
    if (s->pml->ops->count)
        s->pml->ops->count(s->pml, fn, arg);
    for (size_t i = 0; i < s->n_btls; i++)
        of_transport(s->btls[i], fn, arg);
    of_cache(s, fn, arg);
    unlock(s);
    return STRATA_OK;
}

int strata_comm_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted)
{
    if (!comm)
        return STRATA_ERR_ARG;
    if (!comm->ops->queues)
        return STRATA_ERR_UNSUPPORTED;
    lock(comm->context);
    comm->ops->queues(comm, unexpected, posted);
    unlock(comm->context);
    return STRATA_OK;
}

struct show {
    void (*fn)(void *arg, const strata_param_t *p);
    void *arg;
};

static void show_param(void *arg, const struct st_info_param *p)
{
    const struct show *show = arg;
    strata_param_t out = {.name = p->name,
                          .type = p->type,
                          .value = p->value,
                          .default_value = p->dflt,
                          .source = p->source,
                          .unit = p->unit,
                          .help = p->help,
                          .level = p->level};

    show->fn(show->arg, &out);
}

int strata_params(const strata_config_t *config, void (*fn)(void *arg, const strata_param_t *p), void *arg)
{
    struct show show = {fn, arg};
    struct st_mca *mca = NULL;
    char err[512] = "";
    int rc;

    if (!fn)
        return STRATA_ERR_ARG;
    rc = st_info_create(config, &mca, err, sizeof(err));
    if (rc != STRATA_OK) {
        if (config && config->error_text && config->error_text_size) {
            strncpy(config->error_text, err, config->error_text_size - 1);
            config->error_text[config->error_text_size - 1] = 0;
        }
        return rc;
    }
    st_info_params(mca, show_param, &show);
    st_info_destroy(mca);
    return STRATA_OK;
}

/* Who uses how much memory: the sum over the base and all modules. */
#include <stdio.h>

#include <strata/sdk/pml.h>
#include <strata/sdk/rcache.h>

#include "channel/channels.h"
#include "framework/base/context.h"
#include "framework/btl/btl_select.h"
#include "framework/coll/coll_select.h"
#include "framework/worker/worker.h"

/* What it needs itself, and what it keeps pinned for others. */
static void mem_report_cache(strata_t *s, st_mem_line_fn line, void *arg)
{
    struct st_rcache_counters n;
    char name[64];

    s->rcache->ops->mem_report(s->rcache, line, arg);
    s->rcache->ops->counters(s->rcache, &n);
    snprintf(name, sizeof(name), "rcache_%s", s->rcache_component->name);
    strata_mem_line_t now = {.component = name, .category = "pinned", .bytes = n.bytes, .user = 1};
    strata_mem_line_t most = {.component = name, .category = "pinned at most", .bytes = n.bytes_max, .user = 1};
    line(arg, &now);
    line(arg, &most);
}

/* Passes lines on with their high-water marks, and adds up what is private to this process. */
struct mem_sum {
    strata_t *context;
    st_mem_line_fn line;
    void *arg;
    size_t private_bytes;
};

static void mem_report_sum(void *arg, const strata_mem_line_t *line)
{
    struct mem_sum *sum = arg;
    strata_mem_line_t l = *line;

    if (!l.shared && !l.user)
        sum->private_bytes += l.bytes;
    l.most = st_account_most(&sum->context->account, &l);
    sum->line(sum->arg, &l);
}

static void mem_report_base(strata_t *s, st_mem_line_fn line, void *arg)
{
    strata_mem_line_t own = {.component = "base", .category = "other", .bytes = sizeof(*s)};
    strata_mem_line_t bounce = {.component = "base", .category = "bounce buffers"};
    own.bytes += s->n_btls * (sizeof(struct st_btl *) + sizeof(struct st_btl_filled *));
    for (size_t i = 0; i < s->n_btls; i++) {
        own.bytes += st_btl_table_bytes(s->btl_filled[i]);
        bounce.bytes += st_btl_bounce_bytes(s->btls[i]);
    }
    line(arg, &own);
    if (bounce.bytes)
        line(arg, &bounce);
}

static void mem_report_parts(strata_t *s, st_mem_line_fn line, void *arg)
{
    mem_report_base(s, line, arg);
    st_worker_mem_report(s->worker, line, arg);
    if (s->channels)
        st_channels_mem_report(s, line, arg);
    if (s->coll)
        st_coll_mem_report(s, line, arg);
    if (s->pml->ops->mem_report)
        s->pml->ops->mem_report(s->pml, line, arg);
    if (s->bml->ops->mem_report)
        s->bml->ops->mem_report(s->bml, line, arg);
    if (s->rcache)
        mem_report_cache(s, line, arg);
    for (size_t i = 0; i < s->n_btls; i++)
        s->btls[i]->ops->mem_report(s->btls[i], line, arg);
}

int strata_mem_report(strata_t *s, void (*line)(void *arg, const strata_mem_line_t *line), void *arg)
{
    struct mem_sum sum = {.context = s, .line = line, .arg = arg};

    if (!s || !line)
        return STRATA_ERR_ARG;
    st_context_lock(s);
    s->account.reports++;
    mem_report_parts(s, mem_report_sum, &sum);
    st_account_report(&s->account, sum.private_bytes, mem_report_sum, &sum);
    st_context_unlock(s);
    return STRATA_OK;
}

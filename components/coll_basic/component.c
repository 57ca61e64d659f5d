/* The component: parameters, slots, and which algorithm an operation gets. */
#include <stddef.h>
#include <stdlib.h>

#include "build.h"

struct config {
    const char *table;
};

struct basic {
    struct st_coll base;
    ST_ATOMIC(size_t) in_use; /* bytes of slots and schedules */
    struct basic_table table;
};

/* Tags count the operations of a communicator, so that those of two that are under way at once do not match. */
struct slot {
    struct st_coll_slot base;
    ST_ATOMIC(uint32_t) started;
};

static int basic_attach(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out)
{
    struct slot *slot = calloc(1, sizeof(*slot));
    if (!slot)
        return STRATA_ERR_NOMEM;
    slot->base = (struct st_coll_slot){coll, group};
    atomic_fetch_add_explicit(&((struct basic *)coll)->in_use, sizeof(*slot), memory_order_relaxed);
    *out = &slot->base;
    return STRATA_OK;
}

static void basic_detach(struct st_coll_slot *slot)
{
    atomic_fetch_sub_explicit(&((struct basic *)slot->coll)->in_use, sizeof(struct slot), memory_order_relaxed);
    free(slot);
}

static void basic_mem_report(struct st_coll *coll, st_mem_line_fn line, void *arg)
{
    struct basic *b = (struct basic *)coll;
    strata_mem_line_t l = {.component = "coll_basic",
                           .category = "collectives under way",
                           .bytes = atomic_load_explicit(&b->in_use, memory_order_relaxed) + sizeof(*b) +
                                    b->table.n * sizeof(struct basic_rule)};
    line(arg, &l);
}

static void basic_build(struct schedule *s, enum basic_algorithm a)
{
    size_t bytes = s->c.count * s->c.element;
    const void *in = s->c.send == STRATA_IN_PLACE ? s->c.recv : s->c.send;
    switch (s->c.kind) {
    case STRATA_BCAST:
        basic_bcast(s, a);
        break;
    case STRATA_REDUCE:
        basic_reduce_to(s, in, s->c.recv, bytes, s->c.root);
        break;
    case STRATA_ALLREDUCE:
        if (a == BASIC_RING)
            basic_allreduce_ring(s);
        else
            basic_allreduce_doubling(s);
        break;
    case STRATA_SCAN:
        basic_scan(s);
        break;
    case STRATA_BARRIER:
        basic_barrier(s);
        break;
    default:
        basic_exchange(s, a);
        break;
    }
}

static int basic_start(struct st_coll_slot *base, const strata_coll_t *c, strata_coll_request_t **out)
{
    struct slot *slot = (struct slot *)base;
    struct basic *b = (struct basic *)base->coll;
    const strata_comm_t *comm = base->group->comm;
    bool differs = c->kind == STRATA_ALLGATHERV || c->kind == STRATA_ALLTOALLV;
    struct schedule *s = basic_schedule_make(base->group, c, &b->in_use);
    if (!s)
        return STRATA_ERR_NOMEM;
    if (base->group->n_local)
        basic_inter(s, basic_choose_inter(&b->table, c->kind, c->kind == STRATA_ALLREDUCE ? c->count * c->element : 0,
                                          comm->size + base->group->n_local));
    else
        basic_build(
            s, basic_choose(&b->table, c->kind, differs ? 0 : c->count * c->element, comm->size, !c->not_commutative));
    return basic_schedule_start(s, &slot->started, out);
}

static void basic_close(struct st_coll *coll)
{
    struct basic *b = (struct basic *)coll;
    free(b->table.rules);
    free(b);
}

static const struct st_coll_ops ops = {.inter = true,
                                       .attach = basic_attach,
                                       .detach = basic_detach,
                                       .start = basic_start,
                                       .mem_report = basic_mem_report,
                                       .close = basic_close};

static int basic_open(strata_t *s, const struct st_component *component, const void *config, struct st_worker *worker,
                      struct st_coll **out)
{
    (void)worker;
    const struct config *c = config;
    struct basic *b = calloc(1, sizeof(*b));
    char why[512];
    if (!b)
        return STRATA_ERR_NOMEM;
    b->base = (struct st_coll){.ops = &ops, .context = s};
    if (c->table[0] != '\0') {
        int rc = basic_table_read(c->table, &b->table, why, sizeof(why));
        if (rc != STRATA_OK) {
            st_reject(s, component, "coll_basic_table: %s", why);
            free(b);
            return rc;
        }
    }
    *out = &b->base;
    return STRATA_OK;
}

static const struct st_param params[] = {
    {.name = "table",
     .type = ST_PARAM_STRING,
     .offset = offsetof(struct config, table),
     .dflt = "",
     .help = "File that selects algorithms: lines OPERATION RANKS BYTES ALGORITHM, of which the first with limits that "
             "are not exceeded is used; the same at all ranks; empty: the defaults.",
     .level = 4},
};

static const struct st_coll_component_ops component_ops = {.open = basic_open};

ST_COMPONENT(coll, basic) = {
    ST_COMPONENT_HEAD("coll", "basic", "0.1.0", "collectives of messages: trees, doubling, rings, Bruck, pairwise"),
    .ops_size = sizeof(component_ops),
    .priority = 10,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct config),
    .ops = &component_ops,
};

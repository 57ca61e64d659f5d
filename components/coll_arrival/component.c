/* The component: parameters, start, what it hands the worker's events to. */
#include <stddef.h>
#include <stdlib.h>

#include "in.h"
#include "op.h"
#include "table.h"

/* Connects the members, from outside every callback of a transport. */
static void arrival_connect(struct slot *s)
{
    for (int i = 0; i < s->n; i++) {
        struct st_peer *peer = s->member[i].peer;
        int rc = peer && !peer->bml && !peer->failed ? st_worker_connect(s->a->w, peer) : STRATA_OK;
        if (rc != STRATA_OK && rc != STRATA_ERR_AGAIN)
            st_worker_peer_failed(s->a->w, peer->rank, rc, "a member of a collective cannot be reached");
    }
}

static int arrival_start(struct st_coll_slot *base, const strata_coll_t *c, strata_coll_request_t **out)
{
    struct slot *s = (struct slot *)base;
    struct op *op;
    struct arrival_question question;
    if (!arrival_kind_does(c->kind) || s->n == 0)
        return STRATA_ERR_UNSUPPORTED;
    question = arrival_kind_question(s, c);
    if (arrival_choose_next(&s->a->choice, &question))
        return STRATA_ERR_UNSUPPORTED;
    int rc = op_make(s, c, &op);
    if (rc != STRATA_OK)
        return rc;
    strata_coll_request_t *cards = NULL;
    bool asks = s->nodes && s->nodes->stage == NODES_NEW;
    rc = asks ? arrival_agree_begin(s, &cards) : STRATA_OK;
    if (rc != STRATA_OK) {
        op_discard(op);
        return rc;
    }
    *out = &op->head;
    st_worker_lock(s->a->w);
    if (asks) {
        s->nodes->stage = NODES_CARDS;
        s->nodes->cards_req = cards;
    }
    if (!s->begun)
        arrival_connect(s);
    op_append(op);
    op_check(s);
    st_worker_unlock(s->a->w);
    return STRATA_OK;
}

static void arrival_failed(struct st_coll_slot *base)
{
    in_group_failed((struct slot *)base);
}

static int arrival_attend(struct st_coll *coll)
{
    struct arrival *a = (struct arrival *)coll;
    int events = a->lost;
    if (a->lost) {
        a->lost = false;
        st_coll_attend(&a->base, atomic_load_explicit(&a->active, memory_order_relaxed) > 0);
    }
    for (struct st_node *n = a->slots.next; n != &a->slots; n = n->next) {
        struct slot *s = ST_CONTAINER(n, struct slot, node);
        int lost = s->lost;
        s->lost = -1;
        if (lost >= 0)
            st_coll_member_failed_locked(s->base.group, lost);
        if (arrival_agree_due(s))
            st_worker_news(a->w);
        else if (s->counted)
            events += op_turn(s);
    }
    return events;
}

static void arrival_outside(struct st_coll *coll)
{
    struct arrival *a = (struct arrival *)coll;
    if (atomic_load_explicit(&a->active, memory_order_relaxed) == 0) /* a look without the lock */
        return;
    st_worker_lock(a->w);
    for (struct st_node *n = a->slots.next; n != &a->slots;) {
        struct slot *s = ST_CONTAINER(n, struct slot, node);
        n = n->next;
        if (arrival_agree_due(s)) {
            arrival_agree_outside(s);
            op_check(s);       /* calls that have waited for it */
            n = a->slots.next; /* the list has changed meanwhile */
        }
    }
    st_worker_unlock(a->w);
}

/* Of a member that has failed nothing is waited for any more. */
static void arrival_peer_changed(struct st_coll *coll, struct st_peer *peer)
{
    struct arrival *a = (struct arrival *)coll;
    for (struct st_node *n = a->slots.next; peer->failed && n != &a->slots; n = n->next)
        op_check(ST_CONTAINER(n, struct slot, node));
}

static void arrival_mem_report(struct st_coll *coll, st_mem_line_fn line, void *arg)
{
    const struct arrival *a = (const struct arrival *)coll;
    strata_mem_line_t cells = {.component = "coll_arrival", .category = "landing cells", .bytes = a->cell_bytes};
    strata_mem_line_t areas = {
        .component = "coll_arrival", .category = "areas of nodes", .bytes = a->area_bytes, .shared = 1};
    strata_mem_line_t other = {.component = "coll_arrival", .category = "other", .bytes = sizeof(*a) + a->bytes};
    if (cells.bytes)
        line(arg, &cells);
    if (areas.bytes)
        line(arg, &areas);
    line(arg, &other);
}

static void arrival_count(const struct st_counting *counting, uint64_t *value)
{
    const struct arrival *a = ST_CONTAINER(counting, const struct arrival, counting);
    for (int i = 0; i < ARRIVAL_N_COUNTERS; i++)
        value[i] += a->counted[i];
}

static void arrival_close(struct st_coll *coll)
{
    struct arrival *a = (struct arrival *)coll;
    if (a->counted[COUNT_REFUSED])
        st_log(coll->context, ST_LOG_INFO, "coll_arrival", "%lu messages were refused",
               (unsigned long)a->counted[COUNT_REFUSED]);
    early_forget(a);
    st_counters_remove(coll->context, &a->counting);
    free(a->rules);
    free(a);
}

static const struct st_coll_ops ops = {.attach = slot_attach,
                                       .detach = slot_detach,
                                       .created = early_created,
                                       .freed = early_freed,
                                       .start = arrival_start,
                                       .failed = arrival_failed,
                                       .deliver = in_deliver,
                                       .notified = in_notified,
                                       .attend = arrival_attend,
                                       .outside = arrival_outside,
                                       .peer_changed = arrival_peer_changed,
                                       .mem_report = arrival_mem_report,
                                       .close = arrival_close};

static int arrival_choices(strata_t *s, const struct st_component *component, struct arrival *a)
{
    const struct config *config = &a->config;
    char why[512];
    a->choice = (struct arrival_choice){.form = (enum arrival_form)config->form,
                                        .shm_auto = config->shm_auto,
                                        .bcast_auto = config->bcast_auto,
                                        .allgather_auto = config->allgather_auto,
                                        .skew_max = (uint64_t)config->skew_max,
                                        .rules = arrival_default_rules,
                                        .n_rules = ARRIVAL_DEFAULT_RULES};
    if (config->table[0] == '\0')
        return STRATA_OK;
    int rc = arrival_table_read(config->table, &a->rules, &a->choice.n_rules, why, sizeof(why));
    if (rc != STRATA_OK)
        st_reject(s, component, "coll_arrival_table: %s", why);
    a->choice.rules = a->rules;
    return rc;
}

static int arrival_open(strata_t *s, const struct st_component *component, const void *config, struct st_worker *worker,
                        struct st_coll **out)
{
    struct arrival *a = calloc(1, sizeof(*a));
    if (!a)
        return STRATA_ERR_NOMEM;
    a->base = (struct st_coll){.ops = &ops, .context = s};
    a->w = worker;
    a->config = *(const struct config *)config;
    int rc = arrival_choices(s, component, a);
    if (rc != STRATA_OK) {
        free(a);
        return rc;
    }
    st_list_init(&a->slots);
    a->counting = (struct st_counting){.component = component, .count = arrival_count};
    st_counters_add(s, &a->counting);
    *out = &a->base;
    return STRATA_OK;
}

static const char *const schemes[] = {"auto", "copy", "zcopy", NULL};
#define AT(field) offsetof(struct config, field)

static const struct st_param params[] = {
    {"form", ST_PARAM_ENUM, AT(form), "auto", 0, 0, NULL,
     "Form of collectives. direct: to one destination after the other. pap_direct: first to those that have arrived. "
     "shm_direct, pap_shm_direct: the same between the leaders of nodes, by shared memory within a node. bruck, "
     "doubling: alltoalls in rounds. pap_bruck, pap_doubling: the same, but blocks that wait for no other round leave "
     "at once. auto: by the table; without a table, pap_shm_direct for short blocks while members arrive together, "
     "else pap_direct. The same at all ranks.",
     4, arrival_forms},
    {"scheme", ST_PARAM_ENUM, AT(scheme), "auto", 0, 0, NULL,
     "How blocks are sent: copy (to landing cells if they fit, longer ones by messages on demand), zcopy (put to an "
     "address of the receiver), or auto (by length).",
     5, schemes},
    {"cell", ST_PARAM_SIZE, AT(cell), "8k", 0, 1 << 24, "bytes",
     "Longest block that is sent before its receiver has arrived: size of a landing cell, two for each member.", 5,
     NULL},
    {"memory", ST_PARAM_SIZE, AT(memory), "8m", 0, 1e12, "bytes",
     "Maximum memory for the landing cells and areas of all communicators of a process; they shrink to fit.", 4, NULL},
    {"shm_block", ST_PARAM_SIZE, AT(shm_block), "4k", 0, 1 << 24, "bytes",
     "Longest block that is sent by the leaders of nodes; longer ones are sent directly to their receivers. For a "
     "block that all members get, the limit is multiplied by the members of the smallest node.",
     5, NULL},
    {"put_min", ST_PARAM_SIZE, AT(put_min), "32k", 1, 1e12, "bytes",
     "Shortest block that is put into the receiver's memory, with scheme auto.", 6, NULL},
    {"shm_auto", ST_PARAM_SIZE, AT(shm_auto), "256", 0, 1 << 24, "bytes",
     "Longest block that form auto sends by the leaders of nodes, except for bcasts and allgathers; the same at all "
     "ranks.",
     5, NULL},
    {"allgather_auto", ST_PARAM_SIZE, AT(allgather_auto), "16k", 0, 1e12, "bytes",
     "Longest block of an allgather or allgatherv that form auto sends by the leaders of nodes; the same at all ranks.",
     5, NULL},
    {"bcast_auto", ST_PARAM_SIZE, AT(bcast_auto), "1g", 0, 1e12, "bytes",
     "Longest block of a bcast that form auto sends by the leaders of nodes; the same at all ranks.", 5, NULL},
    {"piece", ST_PARAM_SIZE, AT(piece), "128k", 0, 1e12, "bytes",
     "Longest block of a bcast by the leaders of nodes that is sent in one piece; a longer one is sent in pieces of "
     "this size, or in 16 longer ones, which leaders pass on as they arrive; 0: always one piece; the same at all "
     "ranks.",
     5, NULL},
    {"skew_max", ST_PARAM_INT, AT(skew_max), "500", 0, 1000000000, "us",
     "Longest time of a member in a call after which form auto continues to use the leaders of nodes, rounded up to a "
     "power of 2; from 16384 on unlimited; the same at all ranks.",
     5, NULL},
    {"allreduce_once", ST_PARAM_SIZE, AT(allreduce_once), "4k", 0, 1 << 24, "bytes",
     "Longest block of an allreduce that each member sends to all, and that each member combines; of a longer one each "
     "member combines a piece; the same at all ranks.",
     5, NULL},
    {"table", ST_PARAM_STRING, AT(table), "", 0, 0, NULL,
     "File that selects the form of auto: lines OPERATION RANKS NODES BYTES SKEW FORM, of which the first with limits "
     "that are not exceeded is used; -: no limit; form next leaves the operation to the next component; the same at "
     "all ranks; empty: the defaults.",
     4, NULL},
    {"ranks", ST_PARAM_INT, AT(ranks), "16", 0, 1 << 20, "ranks",
     "Largest communicator served by this component; the same at all ranks; 0: none.", 4, NULL},
    {"first_epoch", ST_PARAM_INT, AT(first_epoch), "0", 0, 65535, NULL,
     "Number of a communicator's first call, for tests of numbers that wrap; the same at all ranks.", 9, NULL},
};

static const struct st_coll_component_ops component_ops = {.open = arrival_open};

ST_COMPONENT(coll, arrival) = {
    ST_COMPONENT_HEAD("coll", "arrival", "0.1.0", "collectives that serve the members first that arrive first"),
    .ops_size = sizeof(component_ops),
    .priority = 20,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct config),
    .ops = &component_ops,
    .counters = arrival_counters,
    .n_counters = ARRIVAL_N_COUNTERS,
};

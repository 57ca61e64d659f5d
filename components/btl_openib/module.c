/* A module: opened, published, closed, and its attributes for the layer above. */
#include "eager_rdma/kept.h"
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/account.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/mpool.h>

/* Smallest message by RDMA: when registrations are kept, and when both sides register for each message. */
#define RDMA_MIN_KEPT      (32u << 10)
#define RDMA_MIN_EACH_TIME (512u << 10)

#define MODULE_OPS(send_op, progress_op)                                                                               \
    {                                                                                                                  \
        .reach = ib_reach, .connect = ib_connect, .disconnect = ib_disconnect, .send = (send_op),                      \
        .send_payload = ib_send_payload, .progress = (progress_op), .arm = ib_arm, .disarm = ib_disarm,                \
        .mem_report = ib_mem_report, .describe = ib_describe, .facts = ib_port_facts, .close = ib_close                \
    }
/* Without eager RDMA nothing looks for rings. */
static const struct st_btl_ops module_ops = MODULE_OPS(ib_send, ib_progress),
                               module_ops_eager = MODULE_OPS(ib_send_eager, ib_progress_eager);
static const struct st_btl_rdma module_rdma = {
    .get = ib_get, .put = ib_put, .put_notify = ib_put_notify, .reg = ib_reg, .dereg = ib_dereg};
static const struct st_btl_hints module_hints = {
    .send_zcopy = ib_send_zcopy, .batch = ib_batch, .keep = ib_keep, .release = ib_release};

static void module_attributes(struct ib_module *m)
{
    const struct ib_params *par = m->dev.par;
    struct st_btl *b = &m->btl;
    uint32_t room = (uint32_t)sizeof(struct ib_head) + ST_BTL_HDR_MAX;
    uint32_t high = m->spec[IB_HIGH].size - room, low = m->spec[IB_LOW].size - room;
    const struct ib_limits *limits = m->dev.limits;
    bool keeps = st_rcache_keeps(b->context);

    b->max_send = low;
    b->eager_limit = !par->eager_limit ? high : par->eager_limit < low ? (uint32_t)par->eager_limit : low;
    b->pipeline_send = low;
    m->qps.max_inline = (uint32_t)(par->max_inline ? par->max_inline : limits->max_inline);
    b->rdma_pipeline = par->rdma_pipeline;
    b->facts = (struct st_btl_facts){
        .latency_ns = 1500 + 100 * (uint32_t)(m->dev.distance > 0 ? m->dev.distance : 0),
        .bandwidth_mbs = ib_bandwidth(&m->dev.port_attr),
        .ask_cost = (uint32_t)(par->stream_limit ? par->stream_limit : limits->stream_limit),
        .zcopy_cost = keeps ? (uint32_t)par->zcopy_min : 0,
        .rdma_cost = par->rdma_min ? par->rdma_min
                     : keeps       ? RDMA_MIN_KEPT
                                   : RDMA_MIN_EACH_TIME,
        .split_cost = par->split_min ? par->split_min : limits->split_min,
        .fixed = par->eager_limit || par->stream_limit || par->rdma_min || par->split_min,
    };
    b->max_overtaking = IB_OVERTAKING;
    b->exclusivity = IB_EXCLUSIVITY;
    b->caps = ST_BTL_GET | ST_BTL_PUT | ST_BTL_NEEDS_REG | ST_BTL_MENDS | (keeps ? ST_BTL_REG_KEPT : 0);
}

int ib_module_publish(struct ib_module *m, uint64_t rails)
{
    char key[32];

    m->card.rails = rails;
    m->index = ib_rail_number(rails, m->dev.place);
    snprintf(key, sizeof key, IB_CARD_KEY ".%u", m->index);
    return m->rte->ops->put(m->rte, key, &m->card, sizeof m->card);
}

static void module_free_all(struct ib_module *m)
{
    for (struct ib_peer *p = m->peers.all, *next; p; p = next) {
        next = p->next;
        ib_wire_up_end(p);
        ib_conn_free_qps(p, true);
        free(p->moved);
        free(p);
    }
    m->peers.all = NULL;
    ib_eager_close(m);
    ib_methods_close(m);
    ib_queues_close(m->q);
    ib_qp_map_destroy(&m->qps.map);
    st_rank_table_destroy(&m->peers.table);
    st_slab_destroy(&m->rdma.slab);
    st_slab_destroy(&m->zcopy.slab);
    ib_pool_destroy(&m->zcopy.heads);
    ib_registrations_close(m);
    ib_device_close(&m->dev);
}

static int module_fill(struct ib_module *m, char *why, size_t why_size)
{
    static int (*const parts[])(struct ib_module *) = {ib_zcopy_open, ib_eager_open, ib_registrations_open};
    uint32_t ranks = m->rte->size > 0 ? (uint32_t)m->rte->size : 0;
    struct st_account_mark mark;
    int rc;

    if (!st_mpool(m->btl.context)) {
        snprintf(why, why_size, "no component of mpool is installed or admitted by the list of components");
        return STRATA_ERR_UNSUPPORTED;
    }
    st_account_enter(m->btl.context, ST_ACCOUNT_PAGES, &mark);
    rc = ib_device_open(&m->dev, why, why_size);
    st_account_leave(m->btl.context, &mark);
    if (rc == STRATA_OK)
        rc = st_rank_table_init(&m->peers.table, ranks ? ranks : 1u << 30);
    if (rc == STRATA_OK)
        rc = ib_rdmas_open(&m->rdma);
    if (rc == STRATA_OK)
        rc = ib_qp_map_init(&m->qps.map);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && rc == STRATA_OK; i++)
        rc = parts[i](m);
    if (rc == STRATA_OK)
        rc = ib_queues_open(m->q, &m->dev, m->spec, ranks, why, why_size);
    if (rc == STRATA_OK)
        m->evict.cq_peers = ib_cqs_peers(m->q);
    return rc == STRATA_OK ? ib_methods_open(m, why, why_size) : rc;
}

int ib_module_open(struct ib_module *m, strata_t *s, const struct st_component *c, char *why, size_t why_size)
{
    int rc;

    m->btl.ops = m->dev.par->eager_rdma == IB_EAGER_OFF ? &module_ops : &module_ops_eager;
    m->btl.rdma = &module_rdma;
    m->btl.hints = &module_hints;
    m->btl.context = m->dev.context = s;
    m->btl.component = c;
    m->rte = st_rte(s);
    ib_brief_init(&m->brief, 0);
    m->poll.until = 1;
    m->poll.frag.btl = &m->btl;
    m->oob.wait_fd = -1;
    m->oob.take = ib_conn_take;
    m->oob.heard = ib_conn_heard;
    st_list_init(&m->conns.pending);
    if (!ib_queue_spec_parse(m->dev.par->receive_queues, m->spec, why, why_size) ||
        !ib_queues_fit(&m->dev, m->spec, why, why_size))
        return STRATA_ERR_PARAM;
    rc = ib_eager_favour(m, why, why_size);
    if (rc != STRATA_OK)
        return rc;
    rc = module_fill(m, why, why_size);
    if (rc == STRATA_OK) {
        module_attributes(m);
        rc = ib_card_fill(m);
    }
    if (rc != STRATA_OK) {
        module_free_all(m);
        return rc;
    }
    m->counting = (struct st_counting){.component = c, .count = ib_count};
    st_counters_add(s, &m->counting);
    return rc;
}

/* Whether a message has not reached the memory of a peer that is there to read it, and that can be reached. */
static bool module_is_sending(const struct ib_module *m)
{
    for (const struct ib_peer *p = m->peers.all; p; p = p->next) {
        if (p->left || p->up || (p->state != IB_UP && !ib_is_closing(p->state)))
            continue;
        for (int i = 0; i < IB_PRIORITIES; i++)
            if (p->q[i].posted != p->q[i].done)
                return true;
    }
    return false;
}

/* A connection that the layer above has given up exists until both ends agree. A peer that consented knows that this
 * one may go. */
static bool module_owes_bye(const struct ib_peer *p)
{
    return (p->state == IB_UP || (p->state >= IB_DRAINING && p->state <= IB_CONSENTING)) && !p->left && !p->up &&
           !p->error;
}

static void module_drop(void *arg, const struct st_frag *frag)
{
    (void)arg;
    (void)frag;
}

void ib_close(struct st_btl *btl)
{
    struct ib_module *m = ib_module(btl);
    uint64_t end = st_now_ns() + (uint64_t)m->dev.par->close_timeout_ms * 1000000u;

    m->closing = true;
    st_counters_remove(btl->context, &m->counting);
    for (int i = 0; i < ST_AM_COUNT; i++) /* the handlers may have gone */
        btl->am[i].fn = module_drop;
    /* Peers that said BYE are not waited for. */
    while (btl->ops->progress(btl) > 0 && st_now_ns() < end)
        ;
    /* Signalled: when it has arrived, so has all before it. */
    for (struct ib_peer *p = m->peers.all; p; p = p->next)
        while (module_owes_bye(p) && ib_send_control(p, IB_CONTROL_BYE) == STRATA_ERR_AGAIN && st_now_ns() < end)
            (void)btl->ops->progress(btl);
    while (module_is_sending(m) && st_now_ns() < end)
        (void)btl->ops->progress(btl);
    module_free_all(m);
    (void)ibv_close_device(m->dev.verbs);
    free(m);
}

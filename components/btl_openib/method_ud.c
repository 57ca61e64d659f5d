/* Connecting by datagrams of the device: an unreliable queue pair with a few buffers (the paper's future work, section
 * 7.1). What is lost is sent again by who waits for an answer. */
#include "openib.h"

#include <stdlib.h>
#include <string.h>

#define GRH      40u
#define SLOT     256u  /* bytes of a buffer */
#define SPILL    4096u /* bytes that no datagram exceeds: the largest MTU */
#define RECEIVES 128u
#define SENDS    32u
#define QKEY     0x53545241u
_Static_assert(sizeof(struct ib_conn) + GRH <= SLOT, "a message fits its buffer");

struct ib_datagrams {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ib_pool pool, spill_pool;
    struct ib_buffer
        *spill; /* what comes in excess of a buffer, of all: a datagram that did not fit would end the queue pair */
    struct ib_buffer *free_sends;
};

static int post_receive(struct ib_datagrams *d, struct ib_buffer *b)
{
    struct ibv_sge sge[2] = {{(uintptr_t)b->data, SLOT, b->lkey}, {(uintptr_t)d->spill->data, SPILL, d->spill->lkey}};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)b, .sg_list = sge, .num_sge = 2}, *bad;

    return ibv_post_recv(d->qp, &wr, &bad);
}

static int bring_up(struct ib_module *m, struct ib_datagrams *d)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .pkey_index = (uint16_t)m->par->pkey_index, .port_num = m->port, .qkey = QKEY};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS, .sq_psn = 1};

    if (ibv_modify_qp(d->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0 ||
        ibv_modify_qp(d->qp, &rtr, IBV_QP_STATE) != 0 || ibv_modify_qp(d->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
        return STRATA_ERR_SYSTEM;
    for (uint32_t i = 0; i < RECEIVES; i++)
        if (post_receive(d, ib_buffer_get(&d->pool)) != 0)
            return STRATA_ERR_SYSTEM;
    d->free_sends = d->pool.free;
    return STRATA_OK;
}

static int open_datagrams(struct ib_module *m)
{
    struct ib_datagrams *d = m->method[IB_METHOD_UD] = calloc(1, sizeof *d);
    struct ibv_qp_init_attr a = {
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 2}};
    int rc;

    if (!d)
        return STRATA_ERR_NOMEM;
    ib_pool_init(&d->pool, m, SLOT, RECEIVES + SENDS, 0);
    ib_pool_init(&d->spill_pool, m, SPILL, 1, 0);
    d->cq = ibv_create_cq(m->device, (int)(RECEIVES + SENDS), NULL, m->channel, 0);
    a.send_cq = a.recv_cq = d->cq;
    d->qp = d->cq ? ibv_create_qp(m->pd, &a) : NULL;
    rc = d->qp ? ib_pool_grow(&d->pool) : STRATA_ERR_NOMEM;
    if (rc == STRATA_OK)
        rc = ib_pool_grow(&d->spill_pool);
    if (rc == STRATA_OK) {
        d->spill = ib_buffer_get(&d->spill_pool);
        rc = bring_up(m, d);
    }
    if (rc == STRATA_OK)
        m->card.qpn = d->qp->qp_num;
    return rc;
}

static int ud_open(struct ib_module *m, char *why, size_t why_size)
{
    int rc = open_datagrams(m);

    if (rc != STRATA_OK)
        ib_explain(m, "queue pair for datagrams, with its buffers,", why, why_size);
    return rc;
}

static void ud_close(struct ib_module *m)
{
    struct ib_datagrams *d = m->method[IB_METHOD_UD];

    if (!d)
        return;
    if (d->qp)
        (void)ibv_destroy_qp(d->qp);
    if (d->cq)
        (void)ibv_destroy_cq(d->cq);
    ib_pool_destroy(&d->pool);
    ib_pool_destroy(&d->spill_pool);
    free(d);
    m->method[IB_METHOD_UD] = NULL;
}

static size_t ud_bytes(const struct ib_module *m)
{
    const struct ib_datagrams *d = m->method[IB_METHOD_UD];

    return sizeof *d + ib_pool_bytes(&d->pool) + ib_pool_bytes(&d->spill_pool);
}

static struct ibv_ah *make_ah(struct ib_module *m, const struct ib_card *card)
{
    struct ibv_ah_attr a = {.dlid = card->lid,
                            .sl = (uint8_t)m->par->service_level,
                            .is_global = m->global,
                            .port_num = m->port,
                            .grh = {.sgid_index = m->gid_index, .hop_limit = 64}};

    memcpy(a.grh.dgid.raw, card->gid, sizeof card->gid);
    return ibv_create_ah(m->pd, &a);
}

static int ud_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct ib_datagrams *d = m->method[IB_METHOD_UD];
    struct ib_buffer *b = d->free_sends;
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    if (!w->ah && !(w->ah = make_ah(m, &w->card)))
        return STRATA_ERR_SYSTEM;
    if (!b)
        return STRATA_ERR_AGAIN;
    memcpy(b->data, c, sizeof *c);
    sge = (struct ibv_sge){(uintptr_t)b->data, sizeof *c, b->lkey};
    wr.wr_id = (uintptr_t)b | 1u;
    wr.wr.ud.ah = w->ah;
    wr.wr.ud.remote_qpn = w->card.qpn;
    wr.wr.ud.remote_qkey = QKEY;
    if (ibv_post_send(d->qp, &wr, &bad) != 0)
        return STRATA_ERR_AGAIN;
    d->free_sends = b->next;
    return STRATA_OK;
}

static void received(struct ib_module *m, struct ib_buffer *b, const struct ibv_wc *wc)
{
    struct ib_conn c;

    if (wc->status == IBV_WC_SUCCESS) {
        if (wc->byte_len == GRH + sizeof c) {
            memcpy(&c, b->data + GRH, sizeof c);
            (void)ib_wire_up_take(m, &ib_method_ud, &c);
        } else {
            m->count.refused++;
        }
    }
    (void)post_receive(m->method[IB_METHOD_UD], b);
}

static int ud_poll(struct ib_module *m)
{
    struct ib_datagrams *d = m->method[IB_METHOD_UD];
    struct ibv_wc wc[8];
    int n = ibv_poll_cq(d->cq, 8, wc);

    for (int i = 0; i < n; i++) {
        struct ib_buffer *b = (struct ib_buffer *)(uintptr_t)(wc[i].wr_id & ~(uint64_t)1);
        if (wc[i].wr_id & 1) {
            b->next = d->free_sends;
            d->free_sends = b;
        } else {
            received(m, b, &wc[i]);
        }
    }
    return n > 0 ? n : 0;
}

static int ud_arm(struct ib_module *m)
{
    const struct ib_datagrams *d = m->method[IB_METHOD_UD];

    return ibv_req_notify_cq(d->cq, 0) == 0 ? STRATA_OK : STRATA_ERR_AGAIN;
}

static void ud_end(struct ib_module *m, struct ib_wire_up *w)
{
    (void)m;
    if (w->ah)
        (void)ibv_destroy_ah(w->ah);
    w->ah = NULL;
}

const struct ib_method ib_method_ud = {.name = "ud",
                                       .mask = 0,
                                       .open = ud_open,
                                       .close = ud_close,
                                       .send = ud_send,
                                       .poll = ud_poll,
                                       .arm = ud_arm,
                                       .end = ud_end,
                                       .bytes = ud_bytes};

/* Datagrams: what cannot be delivered is dropped, and nobody is told. The first 40 bytes of a receive are for the
 * global route header (InfiniBand Architecture Specification, volume 1, section 8.3), which is there when the address
 * had one. */
#include "deliver.h"

#include <arpa/inet.h>
#include <string.h>

#define GRH 40u

static void make_grh(const struct hca_qp_own *qp, const struct hca_swqe *w, struct ibv_grh *g)
{
    memset(g, 0, sizeof *g);
    g->version_tclass_flow =
        htonl(6u << 28 | (uint32_t)w->ah.grh.traffic_class << 20 | (w->ah.grh.flow_label & 0xfffffu));
    g->paylen = htons((uint16_t)w->length);
    g->next_hdr = 0x1b;
    g->hop_limit = w->ah.grh.hop_limit;
    g->dgid = w->ah.grh.dgid;
    (void)hca_query_gid(qp->ibv.context, w->ah.port_num, w->ah.grh.sgid_index, &g->sgid);
}

/* The list without its first `n` bytes. */
static uint32_t skip(struct hca_sge *sge, uint32_t count, uint64_t n)
{
    uint32_t from = 0;

    while (from < count && sge[from].length <= n)
        n -= sge[from++].length;
    for (uint32_t i = from; i < count; i++)
        sge[i - from] = sge[i];
    if (from < count) {
        sge[0].addr += n;
        sge[0].length -= (uint32_t)n;
    }
    return count - from;
}

/* False: nothing was written. */
static bool put(const struct hca_qp_own *qp, const struct hca_swqe *w, struct hca_target *t,
                const struct hca_source *from)
{
    struct hca_cqe e = {.opcode = IBV_WC_RECV,
                        .byte_len = GRH + w->length,
                        .imm = w->imm,
                        .flags = (w->opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_WITH_IMM : 0) |
                                 (w->ah.is_global ? IBV_WC_GRH : 0),
                        .src_qp = qp->ibv.qp_num,
                        .slid = qp->shared->lid,
                        .sl = w->ah.sl,
                        .path_bits = w->ah.src_path_bits,
                        .solicited = (w->flags & IBV_SEND_SOLICITED) != 0};
    struct hca_landing l;
    struct ibv_grh grh;
    bool lost;
    struct hca_sge head = {(uintptr_t)&grh, GRH, 0};
    enum hca_copied how = HCA_COPIED;

    if (!hca_land(t, &l, &lost))
        return false;
    if (e.byte_len > l.room) {
        hca_landed(t, &l, IBV_WC_LOC_LEN_ERR, &e);
        hca_qp_break(t->peer, t->qp, -1);
        return true;
    }
    if (!hca_list_check(t->peer->segment, l.pd, l.sge, l.n_sge, e.byte_len, IBV_ACCESS_LOCAL_WRITE)) {
        hca_landed(t, &l, IBV_WC_LOC_PROT_ERR, &e);
        hca_qp_break(t->peer, t->qp, -1);
        return true;
    }
    if (w->ah.is_global) {
        make_grh(qp, w, &grh);
        how = hca_transfer(t->peer, HCA_WRITE, &head, 1, l.sge, l.n_sge, GRH);
    }
    if (how == HCA_COPIED) {
        uint32_t n = skip(l.sge, l.n_sge, GRH);
        how = hca_transfer(t->peer, HCA_WRITE, from->sge, from->n, l.sge, n, w->length);
    }
    hca_landed(t, &l, how == HCA_COPIED ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, &e);
    if (how != HCA_COPIED)
        hca_qp_break(t->peer, t->qp, -1);
    return how != HCA_NOBODY;
}

/* What we have mapped of a process outlives it, and another may have its place by now. True: nothing reached anybody
 * because of that, and the next one to try is the other. */
static bool put_to_dead(const struct hca_qp_own *qp, const struct hca_swqe *w, const struct hca_source *from)
{
    uint16_t dlid = hca_route(&w->ah);
    struct hca_target t;

    if (!hca_take_hold(w->remote_qpn, IBV_QPT_UD, &t))
        return t.peer && hca_peer_dead(t.peer);
    /* The high bit says: the sender's own key. */
    if (t.qp->lid == dlid && t.qp->qkey == (w->remote_qkey & 0x80000000u ? qp->attr.qkey : w->remote_qkey) &&
        hca_port_up(hca.segment, qp->shared->device, qp->shared->port) &&
        hca_port_up(t.peer->segment, t.qp->device, t.qp->port) && put(qp, w, &t, from)) {
        hca_let_go(&t);
        return false;
    }
    hca_let_go(&t);
    return hca_peer_dead(t.peer);
}

enum hca_outcome hca_deliver_ud(struct hca_qp_own *qp, const struct hca_swqe *w, enum ibv_wc_status *status)
{
    struct hca_source from;

    *status = IBV_WC_SUCCESS;
    if (atomic_load(&w->handle->destroyed) || hca_fault_now(HCA_FAULT_DATAGRAM)) {
        *status = IBV_WC_LOC_QP_OP_ERR;
        return HCA_DONE;
    }
    if (w->length > 128u << hca.limits.mtu) {
        *status = IBV_WC_LOC_LEN_ERR;
        return HCA_DONE;
    }
    if (!hca_source(qp, w, 0, &from)) {
        *status = IBV_WC_LOC_PROT_ERR;
        return HCA_DONE;
    }
    if (!hca_lost(qp) && put_to_dead(qp, w, &from))
        (void)put_to_dead(qp, w, &from);
    return HCA_DONE;
}

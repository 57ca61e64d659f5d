/* What a completion tells the program. Its entry lies where peers write, so it is only asked which work request it is
 * of, and of a receive how it went; the rest is what the owner knows. A completion that cannot be breaks its queue
 * pair: the genuine one has been written over, and somebody may wait for it. */
#include "hca.h"

#define GRH         40u
#define MAX_MESSAGE (1u << 30)

/* The queue pair of a completion, if it is one that uses this queue for it. It stays as long as the queue is locked
 * (hca_cq_clean). */
static struct hca_qp_own *user(const struct hca_cq_own *cq, uint32_t qpn, bool sends)
{
    uint32_t slot = hca_qpn_slot(qpn);
    const struct hca_cqs_of *of = &hca.cqs_of[slot];
    struct hca_qp_own *qp = NULL;

    /* Acquire: pairs with publish() in qp.c. */
    if (atomic_load_explicit(sends ? &of->send : &of->recv, memory_order_acquire) == cq->slot + 1)
        qp = hca.qp[slot];
    return qp && qp->ibv.qp_num == qpn ? qp : NULL;
}

static bool wrong(struct hca_qp_own *qp)
{
    hca_qp_break(hca_peer_get(hca.index), qp->shared, IBV_EVENT_QP_FATAL);
    return false;
}

static bool of_send(struct hca_qp_own *qp, const struct hca_cqe *e, struct ibv_wc *wc)
{
    /* Acquire: pairs with hca_send_over(). */
    uint32_t done = atomic_load_explicit(&qp->sq_done, memory_order_acquire);
    uint32_t freed = atomic_load_explicit(&qp->sq_freed, memory_order_relaxed), end = (uint32_t)HCA_ONCE(e->id);
    const struct hca_swqe *w = hca_swqe_at(qp, end - 1);

    if (end - freed - 1 >= done - freed || w->said == 0)
        return wrong(qp);
    *wc = (struct ibv_wc){.wr_id = w->wr_id,
                          .status = (enum ibv_wc_status)(w->said - 1),
                          .opcode = (enum ibv_wc_opcode)hca_wc_opcode(w->opcode),
                          .byte_len = w->length,
                          .qp_num = qp->ibv.qp_num};
    /* Release: who posts writes to the entries after we have read. */
    atomic_store_explicit(&qp->sq_freed, end, memory_order_release);
    return true;
}

static enum ibv_wc_status status_of_receive(uint32_t status)
{
    return status == IBV_WC_SUCCESS || status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_PROT_ERR ||
                   status == IBV_WC_WR_FLUSH_ERR
               ? (enum ibv_wc_status)status
               : IBV_WC_GENERAL_ERR;
}

/* Of a receive that went well: as many bytes as it can have got. */
static uint32_t length_of(const struct hca_qp_own *qp, bool written, uint32_t room, uint32_t length)
{
    uint32_t least = qp->type == IBV_QPT_UD ? GRH : 0, most = room;

    if (written) /* elsewhere, if that is allowed at all */
        most = atomic_load_explicit(&qp->may_be_written, memory_order_relaxed) ? MAX_MESSAGE : 0;
    return length < least ? least : length > most ? most : length;
}

static uint32_t domain_of(const struct hca_qp_own *qp)
{
    return qp->srq ? ((const struct hca_pd_own *)qp->srq->ibv.pd)->number : qp->pd->number;
}

static bool of_receive(struct hca_qp_own *qp, const struct hca_cqe *e, uint32_t parcel, struct ibv_wc *wc)
{
    uint32_t opcode = HCA_ONCE(e->opcode), flags = HCA_ONCE(e->flags);
    bool ud = qp->type == IBV_QPT_UD, written = opcode == IBV_WC_RECV_RDMA_WITH_IMM && !ud;
    struct hca_posted what;

    if (!hca_receive_end(qp->srq ? &qp->srq->receives : &qp->receives, HCA_ONCE(e->id), &what))
        return wrong(qp);
    *wc = (struct ibv_wc){.wr_id = what.wr_id,
                          .status = status_of_receive(HCA_ONCE(e->status)),
                          .opcode = written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                          .imm_data = HCA_ONCE(e->imm),
                          .qp_num = qp->ibv.qp_num,
                          .src_qp = HCA_ONCE(e->src_qp) & 0xffffffu,
                          .wc_flags = written ? IBV_WC_WITH_IMM : flags & (IBV_WC_WITH_IMM | (ud ? IBV_WC_GRH : 0u)),
                          .slid = HCA_ONCE(e->slid),
                          .sl = HCA_ONCE(e->sl) & 15u,
                          .dlid_path_bits = HCA_ONCE(e->path_bits) & 127u};
    if (wc->status == IBV_WC_SUCCESS && ud && what.room < GRH)
        wc->status = IBV_WC_LOC_LEN_ERR;
    if (wc->status == IBV_WC_SUCCESS)
        wc->byte_len = length_of(qp, written, (uint32_t)what.room, HCA_ONCE(e->byte_len));
    if (parcel && wc->status == IBV_WC_SUCCESS && !hca_parcel_open(parcel, domain_of(qp), &what.only, wc->byte_len))
        wc->status = IBV_WC_LOC_PROT_ERR;
    return true;
}

bool hca_completion(const struct hca_cq_own *cq, const struct hca_cqe *e, struct ibv_wc *wc)
{
    bool sends = HCA_ONCE(e->is_send);
    struct hca_qp_own *qp = user(cq, HCA_ONCE(e->qp_num), sends);
    uint32_t parcel = HCA_ONCE(e->parcel);
    /* Nobody's: taken out by hca_cq_clean, or of one who was stopped while its queue pair was destroyed. */
    bool found = qp && (sends ? of_send(qp, e, wc) : of_receive(qp, e, parcel, wc));

    if (hca.cq[cq->slot] == cq) /* not a parent's, whose child we are */
        hca_parcel_free(hca.segment, parcel);
    return found;
}

void hca_completion_drop(struct hca_qp_own *qp, const struct hca_cqe *e)
{
    struct hca_posted what;

    if (!HCA_ONCE(e->is_send))
        (void)hca_receive_end(qp->srq ? &qp->srq->receives : &qp->receives, HCA_ONCE(e->id), &what);
    hca_parcel_free(hca.segment, HCA_ONCE(e->parcel));
}

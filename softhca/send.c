/* Posting sends: what the manual page of ibv_post_send says is refused at once; the rest is for the engine. */
#include "hca.h"

#include <errno.h>
#include <string.h>

#define BIT(op) (1u << (op))
#define UD_OPS  (BIT(IBV_WR_SEND) | BIT(IBV_WR_SEND_WITH_IMM))
#define UC_OPS  (UD_OPS | BIT(IBV_WR_RDMA_WRITE) | BIT(IBV_WR_RDMA_WRITE_WITH_IMM))
#define RC_OPS  (UC_OPS | BIT(IBV_WR_RDMA_READ) | BIT(IBV_WR_ATOMIC_CMP_AND_SWP) | BIT(IBV_WR_ATOMIC_FETCH_AND_ADD))

uint32_t hca_wc_opcode(uint32_t wr_opcode)
{
    switch (wr_opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

static int check(const struct hca_qp_own *qp, const struct ibv_send_wr *wr)
{
    uint32_t ops = qp->type == IBV_QPT_RC ? RC_OPS : qp->type == IBV_QPT_UC ? UC_OPS : UD_OPS;
    bool reads = wr->opcode >= IBV_WR_RDMA_READ && wr->opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;

    if ((unsigned)wr->opcode > 31 || !(ops & BIT(wr->opcode)))
        return EINVAL;
    if (wr->num_sge < 0 || ((wr->send_flags & IBV_SEND_INLINE) && reads))
        return EINVAL;
    if ((uint32_t)wr->num_sge > qp->max_send_sge)
        return EINVAL;
    if (qp->type == IBV_QPT_UD && (!wr->wr.ud.ah || wr->wr.ud.ah->context != qp->ibv.context))
        return EINVAL;
    return 0;
}

static int put_data(const struct hca_qp_own *qp, struct hca_swqe *w, const struct ibv_send_wr *wr)
{
    uint64_t length = 0;
    char *to = (char *)w->sge;

    for (int i = 0; i < wr->num_sge; i++)
        length += wr->sg_list[i].length;
    if (length > UINT32_MAX || ((w->flags & IBV_SEND_INLINE) && length > qp->max_inline))
        return EINVAL;
    w->length = (uint32_t)length;
    w->n_sge = (uint32_t)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *s = &wr->sg_list[i];
        if (w->flags & IBV_SEND_INLINE) {
            if (s->length)
                memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
            to += s->length;
        } else {
            w->sge[i] = (struct hca_sge){s->addr, s->length, s->lkey};
        }
    }
    return 0;
}

/* Entries of the send queue that are not free. Under qp->lock. */
static uint32_t taken(struct hca_qp_own *qp)
{
    /* Acquire: pairs with poll_cq. */
    qp->sq_free = atomic_load_explicit(&qp->sq_freed, memory_order_acquire);
    return qp->sq_tail - qp->sq_free;
}

/* Under qp->lock. */
static int add(struct hca_qp_own *qp, const struct ibv_send_wr *wr)
{
    struct hca_swqe *w;
    int rc = check(qp, wr);

    if (rc != 0)
        return rc;
    const uint32_t n = taken(qp);
    if (n >= qp->max_send_wr || (n == qp->sq->n && hca_sq_grow(qp) != 0))
        return ENOMEM;
    w = hca_swqe_at(qp, qp->sq_tail);
    w->wr_id = wr->wr_id;
    w->said = 0;
    w->opcode = wr->opcode;
    w->flags = wr->send_flags;
    w->imm = wr->imm_data;
    if (qp->type == IBV_QPT_UD) {
        w->handle = (struct hca_ah_own *)wr->wr.ud.ah;
        w->ah = w->handle->attr;
        w->remote_qpn = wr->wr.ud.remote_qpn;
        w->remote_qkey = wr->wr.ud.remote_qkey;
    } else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        w->remote_addr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare_add = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
    } else {
        w->remote_addr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
    }
    rc = put_data(qp, w, wr);
    if (rc != 0)
        return rc;
    if (qp->type == IBV_QPT_UD)
        atomic_fetch_add(&w->handle->holders, 1);
    qp->sq_tail++;
    return 0;
}

/* A delivery writes lines that the target or other senders wrote last, by atomic operations one after the other, each
 * of which would wait for its line alone. Asked for now they come together, while the request is being written. */
static void fetch_lines(const struct hca_qp_own *qp)
{
    for (int i = 0; i < HCA_LINES; i++) {
#if defined(__x86_64__)
        /* What the builtin becomes for the oldest processors would fetch them to be read. */
        __asm__ volatile("prefetchw (%0)" ::"r"(qp->lines[i]));
#else
        __builtin_prefetch(qp->lines[i], 1);
#endif
    }
}

int hca_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct hca_qp_own *qp = (struct hca_qp_own *)ibv;
    uint32_t state = hca_qp_state(qp->shared);
    int rc = state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR ? EINVAL : 0;

    pthread_mutex_lock(&qp->lock);
    fetch_lines(qp);
    while (rc == 0 && wr) {
        rc = add(qp, wr);
        if (rc == 0)
            wr = wr->next;
    }
    hca_engine_run(qp);
    pthread_mutex_unlock(&qp->lock);
    if (rc != 0)
        *bad = wr;
    return rc;
}

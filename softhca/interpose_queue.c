/* Completion channels and queues, shared receive queues, queue pairs. What is fast (posting, polling) programs reach
 * through the context. */
#include "interpose.h"

EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    if (hca_is_ours(context))
        return hca_create_comp_channel(context);
    __typeof__(&ibv_create_comp_channel) real = REAL(ibv_create_comp_channel, V1_0);
    return real ? real(context) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    if (hca_is_ours(channel->context))
        return hca_destroy_comp_channel(channel);
    __typeof__(&ibv_destroy_comp_channel) real = REAL(ibv_destroy_comp_channel, V1_0);
    return real ? real(channel) : ENOSYS;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    if (hca_is_ours(channel->context))
        return hca_get_cq_event(channel, cq, cq_context);
    __typeof__(&ibv_get_cq_event) real = REAL(ibv_get_cq_event, V1_1);
    return real ? real(channel, cq, cq_context) : hca_minus_one(ENOSYS);
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
    if (hca_is_ours(cq->context)) {
        hca_ack_cq_events(cq, n);
        return;
    }
    __typeof__(&ibv_ack_cq_events) real = REAL(ibv_ack_cq_events, V1_1);
    if (real)
        real(cq, n);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                    struct ibv_comp_channel *channel, int comp_vector)
{
    if (hca_is_ours(context))
        return hca_create_cq(context, cqe, cq_context, channel, comp_vector);
    if (channel && hca_is_ours(channel->context))
        return hca_unsupported(EINVAL);
    __typeof__(&ibv_create_cq) real = REAL(ibv_create_cq, V1_1);
    return real ? real(context, cqe, cq_context, channel, comp_vector) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    if (hca_is_ours(cq->context))
        return hca_resize_cq(cq, cqe);
    __typeof__(&ibv_resize_cq) real = REAL(ibv_resize_cq, V1_1);
    return real ? real(cq, cqe) : ENOSYS;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
    if (hca_is_ours(cq->context))
        return hca_destroy_cq(cq);
    __typeof__(&ibv_destroy_cq) real = REAL(ibv_destroy_cq, V1_1);
    return real ? real(cq) : ENOSYS;
}

/* ---- shared receive queues ---- */

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (hca_is_ours(pd->context))
        return hca_create_srq(pd, attr);
    __typeof__(&ibv_create_srq) real = REAL(ibv_create_srq, V1_1);
    return real ? real(pd, attr) : hca_unsupported(ENOSYS);
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    if (hca_is_ours(srq->context))
        return hca_modify_srq(srq, attr, mask);
    __typeof__(&ibv_modify_srq) real = REAL(ibv_modify_srq, V1_1);
    return real ? real(srq, attr, mask) : ENOSYS;
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    if (hca_is_ours(srq->context))
        return hca_query_srq(srq, attr);
    __typeof__(&ibv_query_srq) real = REAL(ibv_query_srq, V1_1);
    return real ? real(srq, attr) : ENOSYS;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
    if (hca_is_ours(srq->context))
        return hca_destroy_srq(srq);
    __typeof__(&ibv_destroy_srq) real = REAL(ibv_destroy_srq, V1_1);
    return real ? real(srq) : ENOSYS;
}

/* ---- queue pairs ---- */

/* The kernel knows none of our objects: a real device is not handed any. */
static bool has_ours(const struct ibv_qp_init_attr *a)
{
    return (a->send_cq && hca_is_ours(a->send_cq->context)) || (a->recv_cq && hca_is_ours(a->recv_cq->context)) ||
           (a->srq && hca_is_ours(a->srq->context));
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (hca_is_ours(pd->context))
        return hca_create_qp(pd, attr);
    if (has_ours(attr))
        return hca_unsupported(EINVAL);
    __typeof__(&ibv_create_qp) real = REAL(ibv_create_qp, V1_1);
    return real ? real(pd, attr) : hca_unsupported(ENOSYS);
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    if (hca_is_ours(qp->context))
        return NULL; /* none is made with these operations */
    __typeof__(&ibv_qp_to_qp_ex) real = REAL(ibv_qp_to_qp_ex, V1_6);
    return real ? real(qp) : NULL;
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init_attr)
{
    if (hca_is_ours(qp->context))
        return hca_query_qp(qp, attr, mask, init_attr);
    __typeof__(&ibv_query_qp) real = REAL(ibv_query_qp, V1_1);
    return real ? real(qp, attr, mask, init_attr) : ENOSYS;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    if (hca_is_ours(qp->context))
        return hca_modify_qp(qp, attr, mask);
    __typeof__(&ibv_modify_qp) real = REAL(ibv_modify_qp, V1_1);
    return real ? real(qp, attr, mask) : ENOSYS;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
    if (hca_is_ours(qp->context))
        return hca_destroy_qp(qp);
    __typeof__(&ibv_destroy_qp) real = REAL(ibv_destroy_qp, V1_1);
    return real ? real(qp) : ENOSYS;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    if (hca_is_ours(qp->context))
        /* The last byte of every write comes last: store.c, transfer.c. But: torn.c. */
        return op == IBV_WR_RDMA_WRITE && flags == 0 && atomic_load(&hca_trouble.torn_us) == 0;
    __typeof__(&ibv_query_qp_data_in_order) real = REAL(ibv_query_qp_data_in_order, V1_14);
    return real ? real(qp, op, flags) : 0;
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    if (hca_is_ours(qp->context))
        return EOPNOTSUPP;
    __typeof__(&ibv_query_ece) real = REAL(ibv_query_ece, V1_10);
    return real ? real(qp, ece) : ENOSYS;
}

EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    if (hca_is_ours(qp->context))
        return EOPNOTSUPP;
    __typeof__(&ibv_set_ece) real = REAL(ibv_set_ece, V1_10);
    return real ? real(qp, ece) : ENOSYS;
}

EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    if (hca_is_ours(qp->context))
        return EOPNOTSUPP;
    __typeof__(&ibv_attach_mcast) real = REAL(ibv_attach_mcast, V1_1);
    return real ? real(qp, gid, lid) : ENOSYS;
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    if (hca_is_ours(qp->context))
        return EOPNOTSUPP;
    __typeof__(&ibv_detach_mcast) real = REAL(ibv_detach_mcast, V1_1);
    return real ? real(qp, gid, lid) : ENOSYS;
}

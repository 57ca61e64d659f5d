/* What a queue pair is told of its connection: rdma_init_qp_attr. */
#include <errno.h>
#include <string.h>
#include "cm.h"

#define ACK_TIMEOUT 14 /* 67 ms */
#define RNR_TIMER   12 /* 0.64 ms */

void cm_path(const struct cm_id *id, struct ib_uverbs_ah_attr *a)
{
    const bool v4 = id->here.at.any.sa_family == AF_INET;
    a->port_num = (uint8_t)id->here.port;
    a->dlid = hca.limits.roce ? 0 : (uint16_t)id->there.lid;
    a->is_global = hca.limits.roce;
    memcpy(a->grh.dgid, id->there.gid.raw, sizeof a->grh.dgid);
    a->grh.sgid_index = hca.limits.roce && v4 ? 1 : 0;
    a->grh.hop_limit = CM_HOPS;
}

/* From the peer's request or answer on, until the connection is over. */
static bool has_peer(const struct cm_id *id)
{
    return cm_has_path(id) && id->state >= CM_ASKED && id->state != CM_OVER;
}

/* A queue pair for datagrams has no peer; the kernel says the same for each state. */
static void datagram_attr(struct ib_uverbs_qp_attr *a)
{
    a->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    a->qkey = CM_QKEY;
}

int cm_qp_attr(const struct cm_id *id, uint32_t state, struct ib_uverbs_qp_attr *a)
{
    memset(a, 0, sizeof *a);
    a->qp_state = state;
    a->port_num = (uint8_t)id->here.port;
    if (!id->here.port || (state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS))
        return EINVAL;
    if (id->datagram) {
        datagram_attr(a);
        return 0;
    }
    if (state != IBV_QPS_INIT && !has_peer(id))
        return EINVAL;
    if (state == IBV_QPS_INIT) {
        a->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
        a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (id->responder_resources)
            a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    } else if (state == IBV_QPS_RTR) {
        a->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        cm_path(id, &a->ah_attr);
        a->path_mtu = hca.limits.mtu;
        a->dest_qp_num = id->theirs.qp_num;
        a->rq_psn = id->there.psn;
        a->max_dest_rd_atomic = id->responder_resources;
        a->min_rnr_timer = RNR_TIMER;
    } else {
        a->qp_attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC;
        a->timeout = id->ack_timeout == CM_UNSET ? ACK_TIMEOUT : (uint8_t)id->ack_timeout;
        a->retry_cnt = id->retry_count > 7 ? 7 : id->retry_count;
        a->rnr_retry = id->theirs.rnr_retry_count > 7 ? 7 : id->theirs.rnr_retry_count;
        a->sq_psn = id->here.psn;
        a->max_rd_atomic = id->initiator_depth;
    }
    return 0;
}

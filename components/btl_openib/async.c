/* Asynchronous events of the device: few buffers left, ports and queue pairs in trouble. */
#include "module.h"

static void async_srq_limit(struct ib_module *m, const struct ibv_srq *srq)
{
    for (uint32_t i = 0; i < IB_PRIORITIES; i++)
        if (m->q[i].srq == srq)
            ib_srq_limit(&m->q[i]);
}

static void async_fail_peers(struct ib_module *m, const char *why)
{
    for (struct ib_peer *p = m->peers.all; p; p = p->next)
        if (p->state != IB_IDLE)
            ib_peer_broken(p, why);
}

/* Peers that connect anew would use the same queue, from which nothing comes any more: those with another path go on by
 * that, and the rest fail with this reason. */
static void async_give_up(struct ib_module *m, const char *why)
{
    m->dev.dead = true;
    async_fail_peers(m, why);
}

/* The queue for datagrams is none of these: without it connections are made by sockets. */
static void async_cq_overrun(struct ib_module *m, const struct ibv_cq *cq)
{
    static const char why[] = "a completion queue was overrun";

    for (uint32_t i = 0; i < IB_PRIORITIES; i++)
        if (m->q[i].cq == cq) {
            async_give_up(m, why);
            return;
        }
    async_fail_peers(m, why);
}

static void async_take(struct ib_module *m, const struct ibv_async_event *e)
{
    struct ib_qp *q;

    switch (e->event_type) {
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        async_srq_limit(m, e->element.srq);
        return;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        q = ib_qp_map_find(&m->qps.map, e->element.qp->qp_num);
        if (q)
            ib_peer_broken(q->peer, ibv_event_type_str(e->event_type));
        else
            ib_methods_failed(m, e->element.qp->qp_num, ibv_event_type_str(e->event_type));
        return;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SQ_DRAINED:
        return;
    case IBV_EVENT_CQ_ERR:
        async_cq_overrun(m, e->element.cq);
        break;
    case IBV_EVENT_SRQ_ERR: /* nothing arrives by it any more: senders would wait for ever */
        async_give_up(m, "a shared receive queue has failed");
        break;
    case IBV_EVENT_DEVICE_FATAL:
        async_give_up(m, "the device has failed");
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        (void)ib_address_refresh(m);
        break;
    default:
        break;
    }
    st_log(m->btl.context, ST_LOG_WARN, "btl_openib", "%s: %s", m->dev.name, ibv_event_type_str(e->event_type));
}

void ib_async_poll(struct ib_module *m)
{
    struct ibv_async_event e;

    while (ibv_get_async_event(m->dev.verbs, &e) == 0) {
        async_take(m, &e);
        ibv_ack_async_event(&e);
    }
}

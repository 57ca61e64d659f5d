/* What it costs to carry out a send: spent before it is delivered, in the serialised engine if there is one. */
#include "cost.h"

/* Of a message of no bytes, too. */
static uint64_t packets_of(const struct hca_qp_own *qp, const struct hca_swqe *w)
{
    const enum ibv_mtu mtu = qp->type == IBV_QPT_UD ? hca.limits.mtu : qp->attr.path_mtu;
    const uint64_t bytes = 128ull << mtu;

    return w->length ? (w->length + bytes - 1) / bytes : 1;
}

/* The lock orders messages. A process whose clock is behind spends the time that the engine was in use as well. */
static void charge_wait(struct hca_charge *c, struct hca_peer *host, uint32_t device)
{
    const uint64_t ns = hca_serial_busy_ns(host, device);

    if (ns == 0)
        return;
    c->begin = hca_cost_ticks();
    c->ps = ns * 1000;
}

static void charge(const struct hca_qp_own *qp, const struct hca_swqe *w, uint32_t device, struct hca_peer *host)
{
    struct hca_charge c = {0};

    if (host)
        charge_wait(&c, host, device);
    /* First what may cost nothing: then there is nothing to count and to spend. */
    if (hca_cost_is(HCA_COST_COLD) && !(w->flags & IBV_SEND_INLINE))
        hca_cost_translate(&c, device, w->sge, w->n_sge);
    if (hca_cost_is(HCA_COST_SWITCH) && hca_serial_switched(host, device, qp->ibv.qp_num))
        hca_charge_add(&c, HCA_COST_SWITCH, 1);
    hca_charge_add(&c, HCA_COST_SEGMENT, w->n_sge > 1 ? w->n_sge - 1 : 0);
    hca_charge_add(&c, HCA_COST_MAX_SGE, qp->max_send_sge);
    if (hca_cost_is(HCA_COST_PACKET))
        hca_charge_add(&c, HCA_COST_PACKET, packets_of(qp, w));
    hca_charge_add(&c, HCA_COST_BYTE, w->length);
    hca_charge_add(&c, HCA_COST_ENGINE, host != NULL);
    hca_charge_spend(&c);
}

enum hca_outcome hca_cost_deliver(struct hca_qp_own *qp, const struct hca_swqe *w, enum ibv_wc_status *status)
{
    const uint32_t device = hca_context(qp->ibv.context)->device->index;
    struct hca_peer *host = hca_cost_is(HCA_COST_ENGINE) ? hca_serial_enter(device) : NULL;

    /* Once, however often it is tried. */
    if (!qp->charged || qp->charged_send != qp->sq_next) {
        qp->charged = true;
        qp->charged_send = qp->sq_next;
        charge(qp, w, device, host);
    }
    const enum hca_outcome outcome =
        qp->type == IBV_QPT_UD ? hca_deliver_ud(qp, w, status) : hca_deliver(qp, w, status);
    if (host)
        hca_serial_leave(host, device);
    return outcome;
}

/* Peers as the layer above sees them: reached, connected, failed. */
#include "data/completion.h"

#include <strata/sdk/clock.h>

int ib_reach(struct st_btl *btl, int rank)
{
    struct ib_module *m = ib_module(btl);
    const struct ib_peer *p = ib_peer_find(m, rank);
    struct ib_card card;
    char why[256] = "";
    int rc;

    if (rank == m->rte->rank || m->dev.dead)
        return STRATA_ERR_UNREACHABLE;
    if (p && (p->state != IB_IDLE || p->misfit))
        return p->misfit || p->state == IB_FAILED || p->state == IB_GONE ? STRATA_ERR_UNREACHABLE : STRATA_OK;
    rc = ib_card_fetch(m, rank, &card, why, sizeof why);
    if (rc != STRATA_OK) {
        ib_card_misfit(m, rank, &card, why);
        if (card.version == IB_WIRE_VERSION) /* it may never send to us, and not look at our card */
            ib_conn_send_misfit(m, rank, &card);
    }
    return rc;
}

int ib_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct ib_peer *p = ib_peer_get(ib_module(btl), rank);

    if (!p)
        return STRATA_ERR_NOMEM;
    if (p->state == IB_FAILED && !ib_module(btl)->dev.dead && ib_address_refresh(ib_module(btl))) {
        ib_close_mend(p);
        return STRATA_ERR_AGAIN;
    }
    if (p->state == IB_FAILED || p->state == IB_GONE)
        return p->state == IB_GONE ? STRATA_ERR_PEER : STRATA_ERR_UNREACHABLE;
    ib_port_calibrate(ib_module(btl));
    *out = &p->ep;
    return STRATA_OK;
}

void ib_disconnect(struct st_btl_endpoint *ep)
{
    struct ib_peer *p = ib_peer(ep);

    ib_close_begin(p);
}

/* A peer that sent BYE ends without a report. */
static void endpoint_failed(struct ib_module *m, struct ib_peer *p)
{
    const char *why = p->error;
    bool news = !p->left && !m->closing;

    p->error = NULL;
    if (p->state >= IB_DRAINING && p->state <= IB_CLOSED)
        m->conns.n_closing--;
    p->state = p->left ? IB_GONE : IB_FAILED;
    p->failed_ns = st_now_ns();
    /* First: operations that end below make the layer above send, whose answers tell it less. */
    if (news && m->btl.path_failed)
        m->btl.path_failed(m->btl.peer_failed_arg, &p->ep, STRATA_ERR_PEER, why);
    if (news && !p->told)
        ib_conn_send_for_a_while(p);
    else
        ib_wire_up_end(p);
    /* The queue pairs stay until the peer is mended or the module closes: completions of theirs may still be in the
     * queues. */
    ib_credits_drop(p);
    ib_qps_error(p);
    for (int i = 0; i < IB_PRIORITIES; i++)
        ib_sent_drop(&p->q[i], STRATA_ERR_PEER);
    ib_rdma_cancel(p);
    ib_eager_reset(p);
}

void ib_report_broken(struct ib_module *m)
{
    m->peers.broken = false;
    for (struct ib_peer *p = m->peers.all; p; p = p->next)
        if (p->error)
            endpoint_failed(m, p);
}

/* Peers: made at the first contact in either direction, kept until the module is closed, so that what was sent by an
 * endpoint that was disconnected still arrives. */
#include <stdlib.h>
#include "bulk.h"
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

int tcp_peer_get(struct tcp_module *m, int rank, struct tcp_peer **out)
{
    struct tcp_peer *p = st_rank_table_get(&m->peers, (uint32_t)rank);
    int rc;

    if (!p) {
        p = calloc(1, sizeof *p);
        rc = p ? st_rank_table_set(&m->peers, (uint32_t)rank, p) : STRATA_ERR_NOMEM;
        if (rc != STRATA_OK) {
            free(p);
            return rc;
        }
        p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = rank, .caps = m->btl.caps};
        p->far = !m->rte->ops->is_local(m->rte, rank);
        st_list_init(&p->dialling);
        m->n_peers++;
    }
    *out = p;
    return STRATA_OK;
}

void tcp_peer_lost(struct tcp_peer *p, const char *why)
{
    struct tcp_module *m = tcp_of(p->ep.btl);

    if (p->failed)
        return;
    p->failed = true;
    p->gone |= !tcp_mends(m);
    tcp_dial_end(p);
    for (struct st_node *n = m->conns.next, *next; n != &m->conns && p->trying; n = next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        next = n->next;
        if (c->peer == p && c != p->conn && !c->bulk) /* from that one is read what has come */
            tcp_conn_close(m, c);
    }
    tcp_bulk_drop(m, p);
    if (m->btl.path_failed && !m->closing)
        m->btl.path_failed(m->btl.peer_failed_arg, &p->ep, STRATA_ERR_PEER, why);
    tcp_rdma_lost(p);
}

void tcp_peer_gone(struct tcp_peer *p, const char *why)
{
    p->gone = true;
    tcp_peer_lost(p, why);
}

void tcp_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts)
{
    const struct tcp_peer *p = (const struct tcp_peer *)ep;

    if (p->bandwidth)
        facts->bandwidth_mbs = p->bandwidth;
}

int tcp_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct tcp_module *m = tcp_of(btl);
    struct tcp_peer *p;
    int rc = rank != m->rte->rank ? tcp_peer_get(m, rank, &p) : STRATA_ERR_UNREACHABLE;

    if (rc != STRATA_OK)
        return rc;
    if (p->gone || p->left)
        return STRATA_ERR_PEER;
    /* Progress reads what has come, and closes it. The first connect may not be refused for that: the peer has called,
     * and its puts were answered. */
    if (p->conn && p->conn->broken && p->bandwidth)
        return STRATA_ERR_AGAIN;
    p->failed = false;
    if (!p->bandwidth)
        p->bandwidth = tcp_dial_bandwidth(m, rank);
    if (!p->conn && !p->dial)
        rc = tcp_dial_begin(m, p);
    if (rc == STRATA_OK)
        *out = &p->ep;
    return rc;
}

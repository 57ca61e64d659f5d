/* Connecting by librdmacm: the connection manager resolves address and route and carries our words as private data of
 * its request, its reply and its last message. One identifier stands for both queue pairs of a peer: they share the
 * path that it found. It lives as long as they do, so that the manager tells at once when a peer has died. Two
 * identifiers with one queue pair are an error to it; where two ask each other at the same time the lower rank's
 * request holds. */
#include "module.h"

#ifndef HAVE_RDMACM

const struct ib_method ib_method_rdmacm = {.name = "rdmacm",
                                           .absent = "this build has no librdmacm (Debian: librdmacm-dev)"};

#else

#include <errno.h>
#include <ifaddrs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/socket.h>
#include <string.h>

#define RESOLVE_MS 2000
#define BACKLOG    1024

struct line {
    struct st_node node;
    struct rdma_cm_id *id;
    int rank; /* -1: not known yet */
    bool incoming;
    bool answered; /* accepted by us, or by the peer */
    struct ib_conn ask;
};

struct manager {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct st_node lines;
    uint32_t n;
};

static struct manager *cm_state(const struct ib_module *m)
{
    return m->oob.state[IB_METHOD_RDMACM];
}

/* ---- identifiers ---- */

static struct line *cm_line_add(struct manager *cm, struct rdma_cm_id *id, int rank, bool incoming)
{
    struct line *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->id = id;
    l->rank = rank;
    l->incoming = incoming;
    if (id)
        id->context = l;
    st_list_append(&cm->lines, &l->node);
    cm->n++;
    return l;
}

static void cm_line_drop(struct manager *cm, struct line *l)
{
    if (l->id)
        (void)rdma_destroy_id(l->id); /* tells the other side when there is a connection */
    st_list_remove(&l->node);
    cm->n--;
    free(l);
}

static struct line *cm_line_find(const struct manager *cm, int rank, bool incoming, bool answered)
{
    for (struct st_node *n = cm->lines.next; n != &cm->lines; n = n->next) {
        struct line *l = ST_CONTAINER(n, struct line, node);
        if (l->rank == rank && l->incoming == incoming && l->answered == answered)
            return l;
    }
    return NULL;
}

static void cm_lines_drop(struct manager *cm, int rank, const struct line *but)
{
    for (struct st_node *n = cm->lines.next, *next; n != &cm->lines; n = next) {
        struct line *l = ST_CONTAINER(n, struct line, node);
        next = n->next;
        if (l != but && l->rank == rank)
            cm_line_drop(cm, l);
    }
}

/* ---- saying ---- */

static struct rdma_conn_param cm_param(const struct ib_module *m, const struct ib_conn *c)
{
    uint8_t reads = ib_device_reads(&m->dev);

    return (struct rdma_conn_param){.private_data = c,
                                    .private_data_len = IB_CONN_PRIVATE,
                                    .responder_resources = reads,
                                    .initiator_depth = reads,
                                    .retry_count = (uint8_t)m->dev.par->retry_count,
                                    .rnr_retry_count = 7,
                                    .srq = m->spec[IB_HIGH].shared,
                                    .qp_num = c->qpn[IB_HIGH]};
}

static int cm_ask(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct manager *cm = cm_state(m);
    struct sockaddr_storage from, to;
    struct line *l;

    if (cm_line_find(cm, w->peer->ep.rank, false, false) || cm_line_find(cm, w->peer->ep.rank, false, true))
        return STRATA_OK; /* it repeats by itself */
    l = cm_line_add(cm, NULL, w->peer->ep.rank, false);
    if (!l)
        return STRATA_ERR_NOMEM;
    l->ask = *c;
    (void)st_socket_address(m->card.cm_address, 0, &from);
    (void)st_socket_address(w->card.cm_address, w->card.cm_port, &to);
    if (rdma_create_id(cm->channel, &l->id, l, RDMA_PS_TCP) != 0)
        l->id = NULL;
    if (!l->id || rdma_resolve_addr(l->id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS) != 0) {
        cm_line_drop(cm, l);
        return STRATA_ERR_AGAIN;
    }
    return STRATA_OK;
}

static int cm_answer(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct manager *cm = cm_state(m);
    struct line *l = cm_line_find(cm, w->peer->ep.rank, true, false);
    struct rdma_conn_param param = cm_param(m, c);

    if (!l || rdma_accept(l->id, &param) != 0)
        return STRATA_ERR_AGAIN;
    l->answered = true;
    cm_lines_drop(cm, l->rank, l);
    return STRATA_OK;
}

static int cm_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct manager *cm = cm_state(m);
    struct line *l;

    switch ((enum ib_conn_type)c->type) {
    case IB_CONN_REQUEST:
        return cm_ask(m, w, c);
    case IB_CONN_REPLY:
        return cm_answer(m, w, c);
    case IB_CONN_READY:
        l = cm_line_find(cm, w->peer->ep.rank, false, true);
        return l && rdma_establish(l->id) == 0 ? STRATA_OK : STRATA_ERR_AGAIN;
    case IB_CONN_FAILED: /* reported by ending the connection */
        cm_lines_drop(cm, w->peer->ep.rank, NULL);
        return STRATA_OK;
    default:
        return STRATA_ERR_UNSUPPORTED;
    }
}

/* ---- hearing ---- */

struct news {
    enum rdma_cm_event_type type;
    struct rdma_cm_id *id;
    bool whole; /* there is a message */
    struct ib_conn c;
};

/* Both ask: false when the other one's request is the one to go on with. */
static bool cm_ours_holds(struct ib_module *m, const struct ib_conn *c)
{
    const struct ib_peer *p = ib_peer_find(m, c->from);
    struct manager *cm = cm_state(m);

    if (!p || p->state != IB_ASKING ||
        (!cm_line_find(cm, c->from, false, false) && !cm_line_find(cm, c->from, false, true)))
        return false;
    if (m->rte->rank < c->from)
        return true;
    cm_lines_drop(cm, c->from, NULL);
    return false;
}

static void cm_requested(struct ib_module *m, const struct news *n)
{
    struct manager *cm = cm_state(m);
    struct line *l = NULL;
    bool ours = n->whole && n->c.type == IB_CONN_REQUEST && n->c.key == m->card.key && n->c.from >= 0 &&
                (m->rte->size <= 0 || n->c.from < m->rte->size);

    if (!ours)
        m->count.refused++;
    if (ours && !cm_ours_holds(m, &n->c))
        l = cm_line_add(cm, n->id, n->c.from, true);
    if (!l) {
        (void)rdma_reject(n->id, NULL, 0);
        (void)rdma_destroy_id(n->id);
        return;
    }
    (void)m->oob.take(m, &ib_method_rdmacm, &n->c);
    l = cm_line_find(cm, n->c.from, true, false);
    if (l) { /* not now: it asks again */
        (void)rdma_reject(l->id, NULL, 0);
        cm_line_drop(cm, l);
    }
}

static void cm_responded(struct ib_module *m, struct line *l, const struct news *n)
{
    l->answered = true;
    if (!n->whole || n->c.from != l->rank || n->c.type != IB_CONN_REPLY) {
        m->count.refused++;
        cm_line_drop(cm_state(m), l);
        return;
    }
    (void)m->oob.take(m, &ib_method_rdmacm, &n->c);
}

/* A step of asking; what fails is begun anew by the timer of the connection. */
static void cm_go_on(struct ib_module *m, struct line *l, const struct news *n)
{
    struct rdma_conn_param param = cm_param(m, &l->ask);
    int rc =
        n->type == RDMA_CM_EVENT_ADDR_RESOLVED ? rdma_resolve_route(l->id, RESOLVE_MS) : rdma_connect(l->id, &param);

    if (rc != 0)
        cm_line_drop(cm_state(m), l);
}

static void cm_ended(struct ib_module *m, struct line *l)
{
    struct ib_peer *p = ib_peer_find(m, l->rank);

    cm_line_drop(cm_state(m), l);
    if (!p || p->state != IB_UP)
        return;
    p->told = true;
    ib_peer_broken(p, "it has ended the connection");
}

static void cm_take(struct ib_module *m, const struct news *n)
{
    struct line *l = n->id->context;
    struct ib_peer *p;

    if (n->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        cm_requested(m, n);
        return;
    }
    if (!l) /* the listener's */
        return;
    switch (n->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        cm_go_on(m, l, n);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        cm_responded(m, l, n);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        p = ib_peer_find(m, l->rank);
        if (p)
            m->oob.heard(p);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        cm_ended(m, l);
        break;
    case RDMA_CM_EVENT_ADDR_CHANGE:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default: /* errors, and refusals */
        cm_line_drop(cm_state(m), l);
    }
}

static int cm_poll(struct ib_module *m)
{
    struct manager *cm = cm_state(m);
    struct rdma_cm_event *e;
    int count = 0;

    for (; count < 16 && rdma_get_cm_event(cm->channel, &e) == 0; count++) {
        struct news n = {.type = e->event, .id = e->id};
        n.whole = e->param.conn.private_data && e->param.conn.private_data_len >= IB_CONN_PRIVATE;
        if (n.whole)
            memcpy(&n.c, e->param.conn.private_data, IB_CONN_PRIVATE);
        (void)rdma_ack_cm_event(e); /* first: an identifier is not destroyed before its events are acknowledged */
        cm_take(m, &n);
    }
    return count;
}

/* But not a request that is just being looked at: it may be why the old connection is ended in haste. */
static void cm_disconnected(struct ib_module *m, struct ib_peer *p)
{
    struct manager *cm = cm_state(m);

    cm_lines_drop(cm, p->ep.rank, cm_line_find(cm, p->ep.rank, true, false));
}

static bool cm_holds(const struct ib_module *m, const struct ib_peer *p)
{
    return cm_line_find(cm_state(m), p->ep.rank, true, true) != NULL;
}

/* As the manager has found it; the path of our own request, or of the one that we answer. */
static int cm_path(struct ib_module *m, struct ib_peer *p, struct ibv_ah_attr *a)
{
    struct manager *cm = cm_state(m);
    struct line *l = cm_line_find(cm, p->ep.rank, true, false);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask = 0;

    if (!l)
        l = cm_line_find(cm, p->ep.rank, false, true);
    if (!l || rdma_init_qp_attr(l->id, &attr, &mask) != 0 || !(mask & IBV_QP_AV))
        return STRATA_ERR_SYSTEM;
    *a = attr.ah_attr;
    if (m->dev.par->service_level)
        a->sl = (uint8_t)m->dev.par->service_level; /* who asks for one does not want the fabric's choice */
    return STRATA_OK;
}

/* ---- life ---- */

/* Listens at an address that is this module's port's: the manager says which device and port an address belongs to. */
static bool cm_listen_at(struct ib_module *m, struct manager *cm, const uint8_t address[16], uint16_t port)
{
    struct rdma_cm_id *id = NULL;
    struct sockaddr_storage at;

    (void)st_socket_address(address, port, &at);
    if (rdma_create_id(cm->channel, &id, NULL, RDMA_PS_TCP) != 0)
        return false;
    if (rdma_bind_addr(id, (struct sockaddr *)&at) == 0 && id->verbs && id->port_num == m->dev.port &&
        strcmp(ibv_get_device_name(id->verbs->device), ibv_get_device_name(m->dev.verbs->device)) == 0 &&
        rdma_listen(id, BACKLOG) == 0) {
        cm->listener = id;
        m->card.cm_port = be16toh(rdma_get_src_port(id));
        return true;
    }
    (void)rdma_destroy_id(id);
    return false;
}

/* port 0: at any number of a port. On Ethernet the GID in use is an IP address, and the way from there is by that GID.
 * Loopback is tried last: an adapter's it is only where the adapter is software of this machine. */
static bool cm_listen(struct ib_module *m, struct manager *cm, uint16_t port)
{
    struct ifaddrs *all = NULL;

    if (m->dev.ethernet) {
        memcpy(m->card.cm_address, m->dev.gid.raw, sizeof m->card.cm_address);
        if (cm_listen_at(m, cm, m->card.cm_address, port))
            return true;
    }
    if (getifaddrs(&all) == 0)
        for (const struct ifaddrs *i = all; i && !cm->listener; i = i->ifa_next)
            if (st_socket_interface(i, m->card.cm_address))
                (void)cm_listen_at(m, cm, m->card.cm_address, port);
    if (all)
        freeifaddrs(all);
    memcpy(m->card.cm_address, cm->listener ? m->card.cm_address : st_socket_loopback, sizeof m->card.cm_address);
    return cm->listener || cm_listen_at(m, cm, m->card.cm_address, port);
}

static int cm_open(struct ib_module *m, char *why, size_t why_size)
{
    struct manager *cm = calloc(1, sizeof *cm);

    if (!cm)
        return STRATA_ERR_NOMEM;
    m->oob.state[IB_METHOD_RDMACM] = cm;
    st_list_init(&cm->lines);
    cm->channel = rdma_create_event_channel();
    if (!cm->channel) {
        snprintf(why, why_size,
                 "btl_openib_connect=rdmacm: this machine has no RDMA connection manager (/dev/infiniband/rdma_cm; "
                 "kernel module rdma_ucm): %s",
                 strerror(errno));
        return STRATA_ERR_UNSUPPORTED;
    }
    if (ib_device_nonblocking(cm->channel->fd) != STRATA_OK || ib_wait_on(m, cm->channel->fd) != STRATA_OK)
        return STRATA_ERR_SYSTEM;
    if (cm_listen(m, cm, 0))
        return STRATA_OK;
    snprintf(why, why_size, "btl_openib_connect=rdmacm: no network interface with an address belongs to %s",
             m->dev.name);
    return STRATA_ERR_UNSUPPORTED;
}

/* At the same number, which is all that is left of what the card says. When there is no address yet another change
 * will come. */
static void cm_moved(struct ib_module *m)
{
    struct manager *cm = cm_state(m);

    if (cm->listener)
        (void)rdma_destroy_id(cm->listener);
    cm->listener = NULL;
    (void)cm_listen(m, cm, m->card.cm_port);
}

static void cm_close(struct ib_module *m)
{
    struct manager *cm = cm_state(m);
    struct st_node *n;

    if (!cm)
        return;
    while ((n = st_list_first(&cm->lines)) != NULL)
        cm_line_drop(cm, ST_CONTAINER(n, struct line, node));
    if (cm->listener)
        (void)rdma_destroy_id(cm->listener);
    if (cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm);
    m->oob.state[IB_METHOD_RDMACM] = NULL;
}

static size_t cm_bytes(const struct ib_module *m)
{
    const struct manager *cm = cm_state(m);

    return sizeof *cm + cm->n * (sizeof(struct line) + sizeof(struct rdma_cm_id));
}

const struct ib_method ib_method_rdmacm = {.name = "rdmacm",
                                           .mask = 15,
                                           .open = cm_open,
                                           .close = cm_close,
                                           .send = cm_send,
                                           .poll = cm_poll,
                                           .disconnected = cm_disconnected,
                                           .moved = cm_moved,
                                           .path = cm_path,
                                           .holds = cm_holds,
                                           .bytes = cm_bytes};
#endif

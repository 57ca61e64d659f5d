/* Connecting by librdmacm: the connection manager resolves address and route and carries our words as private data of
 * its request, its reply and its last message. One identifier stands for both queue pairs of a peer: they share the
 * path that it found. It lives as long as they do, so that the manager tells at once when a peer has died. Two
 * identifiers with one queue pair are an error to it; where two ask each other at the same time the lower rank's
 * request holds. */
#include "openib.h"

#ifndef HAVE_RDMACM

const struct ib_method ib_method_rdmacm = {.name = "rdmacm",
                                           .absent = "this build has no librdmacm (Debian: librdmacm-dev)"};

#else

#include <errno.h>
#include <fcntl.h>
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
    struct ib_cm_word ask;
};

struct manager {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct st_node lines;
    uint32_t n;
};

static struct manager *manager_of(const struct ib_module *m)
{
    return m->method[IB_METHOD_RDMACM];
}

static struct ib_cm_word to_word(const struct ib_conn *c)
{
    struct ib_cm_word w = {.key = c->key,
                           .version = c->version,
                           .type = c->type,
                           .mtu = c->mtu,
                           .rd_atomic = c->rd_atomic,
                           .rail = c->rail,
                           .from = c->from,
                           .to = c->to,
                           .mine = c->mine,
                           .yours = c->yours};

    for (int i = 0; i < IB_PRIORITIES; i++) {
        w.qpn[i] = c->qpn[i];
        w.credits[i] = (uint16_t)c->credits[i]; /* at most 1 << 14: queue_spec.c */
    }
    return w;
}

static struct ib_conn from_word(const struct ib_cm_word *w)
{
    struct ib_conn c = {.version = w->version,
                        .type = w->type,
                        .mtu = w->mtu,
                        .rd_atomic = w->rd_atomic,
                        .rail = w->rail,
                        .key = w->key,
                        .from = w->from,
                        .to = w->to,
                        .mine = w->mine,
                        .yours = w->yours};

    for (int i = 0; i < IB_PRIORITIES; i++) {
        c.qpn[i] = w->qpn[i];
        c.psn[i] = w->qpn[i] & 0xffffffu;
        c.credits[i] = w->credits[i];
    }
    return c;
}

/* ---- identifiers ---- */

static struct line *add(struct manager *cm, struct rdma_cm_id *id, int rank, bool incoming)
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

static void drop(struct manager *cm, struct line *l)
{
    if (l->id)
        (void)rdma_destroy_id(l->id); /* tells the other side when there is a connection */
    st_list_remove(&l->node);
    cm->n--;
    free(l);
}

static struct line *find(const struct manager *cm, int rank, bool incoming, bool answered)
{
    for (struct st_node *n = cm->lines.next; n != &cm->lines; n = n->next) {
        struct line *l = ST_CONTAINER(n, struct line, node);
        if (l->rank == rank && l->incoming == incoming && l->answered == answered)
            return l;
    }
    return NULL;
}

static void drop_all(struct manager *cm, int rank, const struct line *but)
{
    for (struct st_node *n = cm->lines.next, *next; n != &cm->lines; n = next) {
        struct line *l = ST_CONTAINER(n, struct line, node);
        next = n->next;
        if (l != but && l->rank == rank)
            drop(cm, l);
    }
}

/* ---- saying ---- */

static struct rdma_conn_param param_of(const struct ib_module *m, const struct ib_cm_word *w)
{
    uint8_t reads = (uint8_t)(m->attr.max_qp_rd_atom < 16 ? m->attr.max_qp_rd_atom : 16);

    return (struct rdma_conn_param){.private_data = w,
                                    .private_data_len = sizeof *w,
                                    .responder_resources = reads,
                                    .initiator_depth = reads,
                                    .retry_count = (uint8_t)m->par->retry_count,
                                    .rnr_retry_count = 7,
                                    .srq = m->spec[IB_HIGH].shared,
                                    .qp_num = w->qpn[IB_HIGH]};
}

static int ask(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct manager *cm = manager_of(m);
    struct sockaddr_storage from, to;
    struct line *l;

    if (find(cm, w->peer->ep.rank, false, false) || find(cm, w->peer->ep.rank, false, true))
        return STRATA_OK; /* it repeats by itself */
    l = add(cm, NULL, w->peer->ep.rank, false);
    if (!l)
        return STRATA_ERR_NOMEM;
    l->ask = to_word(c);
    (void)st_socket_address(m->card.cm_address, 0, &from);
    (void)st_socket_address(w->card.cm_address, w->card.cm_port, &to);
    if (rdma_create_id(cm->channel, &l->id, l, RDMA_PS_TCP) != 0)
        l->id = NULL;
    if (!l->id || rdma_resolve_addr(l->id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS) != 0) {
        drop(cm, l);
        return STRATA_ERR_AGAIN;
    }
    return STRATA_OK;
}

static int answer(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct manager *cm = manager_of(m);
    struct line *l = find(cm, w->peer->ep.rank, true, false);
    struct ib_cm_word word = to_word(c);
    struct rdma_conn_param param = param_of(m, &word);

    if (!l || rdma_accept(l->id, &param) != 0)
        return STRATA_ERR_AGAIN;
    l->answered = true;
    drop_all(cm, l->rank, l);
    return STRATA_OK;
}

static int cm_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct manager *cm = manager_of(m);
    struct line *l;

    switch ((enum ib_conn_type)c->type) {
    case IB_CONN_REQUEST:
        return ask(m, w, c);
    case IB_CONN_REPLY:
        return answer(m, w, c);
    case IB_CONN_READY:
        l = find(cm, w->peer->ep.rank, false, true);
        return l && rdma_establish(l->id) == 0 ? STRATA_OK : STRATA_ERR_AGAIN;
    case IB_CONN_FAILED: /* said by ending the connection */
        drop_all(cm, w->peer->ep.rank, NULL);
        return STRATA_OK;
    case IB_CONN_MISFIT:
    case IB_CONN_MOVED:
    case IB_CONN_BUSY:
    case IB_CONN_CLOSE:
    case IB_CONN_CLOSE_TOO:
    case IB_CONN_CLOSED:
        break;
    }
    return STRATA_ERR_UNSUPPORTED;
}

/* ---- hearing ---- */

struct news {
    enum rdma_cm_event_type type;
    struct rdma_cm_id *id;
    bool whole; /* there is a word */
    struct ib_cm_word word;
};

/* Both ask: false when the other one's request is the one to go on with. */
static bool ours_holds(struct ib_module *m, const struct ib_conn *c)
{
    const struct ib_peer *p = st_rank_table_get(&m->peers, (uint32_t)c->from);
    struct manager *cm = manager_of(m);

    if (!p || p->state != IB_ASKING || (!find(cm, c->from, false, false) && !find(cm, c->from, false, true)))
        return false;
    if (m->rte->rank < c->from)
        return true;
    drop_all(cm, c->from, NULL);
    return false;
}

static void requested(struct ib_module *m, const struct news *n)
{
    struct manager *cm = manager_of(m);
    struct ib_conn c = from_word(&n->word);
    struct line *l = NULL;
    bool ours = n->whole && c.type == IB_CONN_REQUEST && c.key == m->card.key && c.from >= 0 &&
                (m->rte->size <= 0 || c.from < m->rte->size);

    if (!ours)
        m->count.refused++;
    if (ours && !ours_holds(m, &c))
        l = add(cm, n->id, c.from, true);
    if (!l) {
        (void)rdma_reject(n->id, NULL, 0);
        (void)rdma_destroy_id(n->id);
        return;
    }
    (void)ib_wire_up_take(m, &ib_method_rdmacm, &c);
    l = find(cm, c.from, true, false);
    if (l) { /* not now: it asks again */
        (void)rdma_reject(l->id, NULL, 0);
        drop(cm, l);
    }
}

static void responded(struct ib_module *m, struct line *l, const struct news *n)
{
    struct ib_conn c = from_word(&n->word);

    l->answered = true;
    if (!n->whole || c.from != l->rank || c.type != IB_CONN_REPLY) {
        m->count.refused++;
        drop(manager_of(m), l);
        return;
    }
    (void)ib_wire_up_take(m, &ib_method_rdmacm, &c);
}

/* A step of asking; what fails is begun anew by the timer of the connection. */
static void go_on(struct ib_module *m, struct line *l, const struct news *n)
{
    struct rdma_conn_param param = param_of(m, &l->ask);
    int rc =
        n->type == RDMA_CM_EVENT_ADDR_RESOLVED ? rdma_resolve_route(l->id, RESOLVE_MS) : rdma_connect(l->id, &param);

    if (rc != 0)
        drop(manager_of(m), l);
}

static void ended(struct ib_module *m, struct line *l)
{
    struct ib_peer *p = st_rank_table_get(&m->peers, (uint32_t)l->rank);

    drop(manager_of(m), l);
    if (!p || p->state != IB_UP)
        return;
    p->told = true;
    ib_peer_broken(p, "it has ended the connection");
}

static void take(struct ib_module *m, const struct news *n)
{
    struct line *l = n->id->context;
    struct ib_peer *p;

    if (n->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        requested(m, n);
        return;
    }
    if (!l) /* the listener's */
        return;
    switch (n->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        go_on(m, l, n);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        responded(m, l, n);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        p = st_rank_table_get(&m->peers, (uint32_t)l->rank);
        if (p)
            ib_wire_up_heard(p);
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        ended(m, l);
        break;
    case RDMA_CM_EVENT_ADDR_CHANGE:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
    default: /* errors, and refusals */
        drop(manager_of(m), l);
    }
}

static int cm_poll(struct ib_module *m)
{
    struct manager *cm = manager_of(m);
    struct rdma_cm_event *e;
    int count = 0;

    for (; count < 16 && rdma_get_cm_event(cm->channel, &e) == 0; count++) {
        struct news n = {.type = e->event, .id = e->id};
        n.whole = e->param.conn.private_data && e->param.conn.private_data_len >= sizeof n.word;
        if (n.whole)
            memcpy(&n.word, e->param.conn.private_data, sizeof n.word);
        (void)rdma_ack_cm_event(e); /* first: an identifier is not destroyed before its events are acknowledged */
        take(m, &n);
    }
    return count;
}

/* But not a request that is just being looked at: it may be why the old connection is ended in haste. */
static void cm_disconnected(struct ib_module *m, struct ib_peer *p)
{
    struct manager *cm = manager_of(m);

    drop_all(cm, p->ep.rank, find(cm, p->ep.rank, true, false));
}

static bool cm_holds(const struct ib_module *m, const struct ib_peer *p)
{
    return find(manager_of(m), p->ep.rank, true, true) != NULL;
}

/* As the manager has found it; the path of our own request, or of the one that we answer. */
static int cm_path(struct ib_module *m, struct ib_peer *p, struct ibv_ah_attr *a)
{
    struct manager *cm = manager_of(m);
    struct line *l = find(cm, p->ep.rank, true, false);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask = 0;

    if (!l)
        l = find(cm, p->ep.rank, false, true);
    if (!l || rdma_init_qp_attr(l->id, &attr, &mask) != 0 || !(mask & IBV_QP_AV))
        return STRATA_ERR_SYSTEM;
    *a = attr.ah_attr;
    if (m->par->service_level)
        a->sl = (uint8_t)m->par->service_level; /* who asks for one does not want the fabric's choice */
    return STRATA_OK;
}

/* ---- life ---- */

/* Listens at an address that is this module's port's: the manager says which device and port an address belongs to. */
static bool listen_at(struct ib_module *m, struct manager *cm, const uint8_t address[16], uint16_t port)
{
    struct rdma_cm_id *id = NULL;
    struct sockaddr_storage at;

    (void)st_socket_address(address, port, &at);
    if (rdma_create_id(cm->channel, &id, NULL, RDMA_PS_TCP) != 0)
        return false;
    if (rdma_bind_addr(id, (struct sockaddr *)&at) == 0 && id->verbs && id->port_num == m->port &&
        strcmp(ibv_get_device_name(id->verbs->device), ibv_get_device_name(m->device->device)) == 0 &&
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
static bool listen_somewhere(struct ib_module *m, struct manager *cm, uint16_t port)
{
    struct ifaddrs *all = NULL;

    if (m->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
        memcpy(m->card.cm_address, m->gid.raw, sizeof m->card.cm_address);
        if (listen_at(m, cm, m->card.cm_address, port))
            return true;
    }
    if (getifaddrs(&all) == 0)
        for (const struct ifaddrs *i = all; i && !cm->listener; i = i->ifa_next)
            if (st_socket_interface(i, m->card.cm_address))
                (void)listen_at(m, cm, m->card.cm_address, port);
    if (all)
        freeifaddrs(all);
    memcpy(m->card.cm_address, cm->listener ? m->card.cm_address : st_socket_loopback, sizeof m->card.cm_address);
    return cm->listener || listen_at(m, cm, m->card.cm_address, port);
}

static int cm_open(struct ib_module *m, char *why, size_t why_size)
{
    struct manager *cm = calloc(1, sizeof *cm);
    int flags;

    if (!cm)
        return STRATA_ERR_NOMEM;
    m->method[IB_METHOD_RDMACM] = cm;
    st_list_init(&cm->lines);
    cm->channel = rdma_create_event_channel();
    if (!cm->channel) {
        snprintf(
            why, why_size,
            "btl_openib_connect=rdmacm: this machine has no RDMA connection manager (/dev/infiniband/rdma_cm; kernel "
            "module rdma_ucm): %s",
            strerror(errno));
        return STRATA_ERR_UNSUPPORTED;
    }
    flags = fcntl(cm->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        ib_wait_on(m, cm->channel->fd) != STRATA_OK)
        return STRATA_ERR_SYSTEM;
    if (listen_somewhere(m, cm, 0))
        return STRATA_OK;
    snprintf(why, why_size, "btl_openib_connect=rdmacm: no network interface with an address belongs to %s", m->name);
    return STRATA_ERR_UNSUPPORTED;
}

/* At the same number, which is all that is left of what the card says. When there is no address yet another change
 * will come. */
static void cm_moved(struct ib_module *m)
{
    struct manager *cm = manager_of(m);

    if (cm->listener)
        (void)rdma_destroy_id(cm->listener);
    cm->listener = NULL;
    (void)listen_somewhere(m, cm, m->card.cm_port);
}

static void cm_close(struct ib_module *m)
{
    struct manager *cm = manager_of(m);
    struct st_node *n;

    if (!cm)
        return;
    while ((n = st_list_first(&cm->lines)) != NULL)
        drop(cm, ST_CONTAINER(n, struct line, node));
    if (cm->listener)
        (void)rdma_destroy_id(cm->listener);
    if (cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm);
    m->method[IB_METHOD_RDMACM] = NULL;
}

static size_t cm_bytes(const struct ib_module *m)
{
    const struct manager *cm = manager_of(m);

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

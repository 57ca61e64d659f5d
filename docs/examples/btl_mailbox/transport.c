/* The ops of btl_mailbox: reach, connect, send, progress. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "mailbox.h"

static int mailbox_reach(struct st_btl *btl, int rank)
{
    struct mailbox *m = (struct mailbox *)btl;
    struct st_rte *rte = st_rte(btl->context);

    return rank != m->rank && rte->ops->is_local(rte, rank) ? STRATA_OK : STRATA_ERR_UNREACHABLE;
}

/* "Connecting" is learning the peer's address; sockets of this kind need no more. */
static int mailbox_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out)
{
    struct mailbox *m = (struct mailbox *)btl;
    struct st_rte *rte = st_rte(btl->context);
    struct mailbox_endpoint *e = st_rank_table_get(&m->peers, (uint32_t)rank);
    void *blob = NULL;
    size_t length = 0;
    int rc;

    if (e) { /* made before, by an arrival */
        *out = &e->ep;
        return STRATA_OK;
    }
    rc = rte->ops->get(rte, rank, "btl_mailbox", &blob, &length);
    if (rc != STRATA_OK)
        return rc;
    e = calloc(1, sizeof(*e));
    if (!e)
        rc = STRATA_ERR_NOMEM;
    else if (length != sizeof(e->address))
        rc = STRATA_ERR_PROTOCOL;
    if (rc == STRATA_OK) {
        memcpy(&e->address, blob, sizeof(e->address));
        e->ep.btl = btl;
        e->ep.rank = rank;
        e->ep.caps = btl->caps;
        rc = e->address.length > sizeof(e->address.name) ? STRATA_ERR_PROTOCOL
                                                         : st_rank_table_set(&m->peers, (uint32_t)rank, e);
    }
    free(blob);
    if (rc != STRATA_OK) {
        free(e);
        return rc;
    }
    *out = &e->ep;
    return STRATA_OK;
}

static void mailbox_disconnect(struct st_btl_endpoint *ep)
{
    struct mailbox *m = (struct mailbox *)ep->btl;

    st_rank_table_set(&m->peers, (uint32_t)ep->rank, NULL);
    free(ep);
}

/* Hot path. A full mailbox is back-pressure: nothing is taken and the caller comes again. */
static int mailbox_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                        uint32_t len)
{
    struct mailbox *m = (struct mailbox *)ep->btl;
    struct mailbox_endpoint *e = (struct mailbox_endpoint *)ep;
    struct mailbox_wire wire = {MAILBOX_MAGIC, m->rank, (uint16_t)am, (uint16_t)hdr_len, len};
    struct iovec v[3] = {{&wire, sizeof(wire)}, {(void *)(uintptr_t)hdr, hdr_len}, {(void *)(uintptr_t)data, len}};
    struct msghdr msg = {
        .msg_name = &e->address.name, .msg_namelen = e->address.length, .msg_iov = v, .msg_iovlen = len ? 3 : 2};

    if (sendmsg(m->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
        m->btl.bytes_sent += len;
        m->btl.messages_sent++;
        return STRATA_OK;
    }
    switch (errno) {
    case EAGAIN:
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
        m->full++;
        m->refused = true;
        return STRATA_ERR_AGAIN;
    default: /* ECONNREFUSED: its socket is gone, and so is the peer */
        m->btl.peer_failed(m->btl.peer_failed_arg, ep->rank, STRATA_ERR_PEER, strerror(errno));
        return STRATA_ERR_PEER;
    }
}

/* Who sent a datagram? Any process of the machine can write to our socket and claim any rank, so the claim is checked
 * against the address that this rank published: the kernel says where a datagram came from. */
static struct mailbox_endpoint *peer_of(struct mailbox *m, int32_t rank, const struct mailbox_address *from)
{
    struct mailbox_endpoint *e;
    struct st_btl_endpoint *ep;

    if (rank < 0 || rank >= m->size)
        return NULL;
    e = st_rank_table_get(&m->peers, (uint32_t)rank);
    if (!e) {
        if (mailbox_connect(&m->btl, rank, &ep) != STRATA_OK)
            return NULL;
        e = (struct mailbox_endpoint *)ep;
    }
    return e->address.length == from->length && memcmp(&e->address.name, &from->name, from->length) == 0 ? e : NULL;
}

/* Takes up to `batch` datagrams: bounded time. What cannot be true is dropped. */
static int mailbox_progress(struct st_btl *btl)
{
    struct mailbox *m = (struct mailbox *)btl;
    int events = 0;

    while (events < m->batch) {
        struct mailbox_address from = {.length = sizeof(from.name)};
        ssize_t n = recvfrom(m->fd, m->buffer, m->buffer_size, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&from.name,
                             &from.length);
        struct mailbox_wire wire;
        struct st_frag frag;

        if (n < 0)
            break; /* EAGAIN: empty */
        events++;
        if ((size_t)n < sizeof(wire) || (size_t)n > m->buffer_size)
            continue;
        memcpy(&wire, m->buffer, sizeof(wire));
        if (wire.magic != MAILBOX_MAGIC || wire.am >= ST_AM_COUNT || wire.hdr_len > ST_BTL_HDR_MAX ||
            sizeof(wire) + wire.hdr_len + wire.len != (size_t)n || !peer_of(m, wire.rank, &from)) {
            m->dropped++;
            st_log(btl->context, ST_LOG_WARN, "btl_mailbox", "dropped a datagram that is not one of ours (%zd bytes)",
                   n);
            continue;
        }
        frag.hdr = m->buffer + sizeof(wire);
        frag.hdr_len = wire.hdr_len;
        frag.data = m->buffer + sizeof(wire) + wire.hdr_len;
        frag.len = wire.len;
        frag.rank = wire.rank;
        frag.btl = btl;
        st_btl_deliver(btl, (enum st_am)wire.am, &frag);
    }
    return events;
}

/* A sleeper is woken by the socket: readable from the moment that a datagram is there. Nothing tells of room in the
 * mailbox of a peer, so that who was refused does not sleep, and tries again. */
static int mailbox_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    struct mailbox *m = (struct mailbox *)btl;
    bool refused = m->refused;

    m->refused = false;
    w->fd = m->fd;
    return refused ? STRATA_ERR_AGAIN : STRATA_OK;
}

static void mailbox_disarm(struct st_btl *btl)
{
    (void)btl;
}

static void mailbox_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg)
{
    struct mailbox *m = (struct mailbox *)btl;
    strata_mem_line_t rings = {.component = "btl_mailbox", .category = "eager rings", .bytes = m->buffer_size};
    strata_mem_line_t peers = {
        .component = "btl_mailbox", .category = "peers", .bytes = st_rank_table_bytes(&m->peers)};

    for (int64_t r = st_rank_table_next(&m->peers, 0); r >= 0; r = st_rank_table_next(&m->peers, (uint32_t)r + 1))
        peers.bytes += sizeof(struct mailbox_endpoint);
    line(arg, &rings);
    line(arg, &peers);
}

static char *mailbox_describe(struct st_btl *btl, struct st_btl_endpoint *ep)
{
    (void)btl, (void)ep;
    return strdup("{\"device\": \"AF_UNIX datagrams\", \"single_copy\": \"none\"}");
}

/* Messages and bytes are counted by the base, from the fields of struct st_btl. */
const struct st_counter mailbox_counters[MAILBOX_N_COUNTERS] = {
    {"full", "times", STRATA_COUNT, "The peer's mailbox had no room, and the send was tried again later."},
    {"dropped", "datagrams", STRATA_COUNT, "A datagram came that is not of this job."},
};

void mailbox_count(const struct st_counting *counting, uint64_t *value)
{
    const struct mailbox *m = ST_CONTAINER(counting, struct mailbox, counting);

    value[0] += m->full;
    value[1] += m->dropped;
}

/* What we sent is in the peers' mailboxes already: the kernel delivers it even after our socket is closed. */
static void mailbox_close(struct st_btl *btl)
{
    struct mailbox *m = (struct mailbox *)btl;

    st_counters_remove(btl->context, &m->counting);
    for (int64_t r = st_rank_table_next(&m->peers, 0); r >= 0; r = st_rank_table_next(&m->peers, (uint32_t)r + 1))
        free(st_rank_table_get(&m->peers, (uint32_t)r));
    st_rank_table_destroy(&m->peers);
    close(m->fd);
    free(m->buffer);
    free(m);
}

/* No get and put: datagrams only. No send_payload: the base gathers data that is not contiguous and calls send. */
const struct st_btl_ops mailbox_ops = {
    .reach = mailbox_reach,
    .connect = mailbox_connect,
    .disconnect = mailbox_disconnect,
    .send = mailbox_send,
    .progress = mailbox_progress,
    .arm = mailbox_arm,
    .disarm = mailbox_disarm,
    .mem_report = mailbox_mem_report,
    .describe = mailbox_describe,
    .close = mailbox_close,
};

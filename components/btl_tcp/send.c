/* Sending: a frame leaves by one system call. The part that the socket does not take is kept, and until it has gone
 * sends are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "bulk.h"
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

#define BURST_NS 1000000u
#define JOINED   512u /* bytes: frames up to this length are put together before they are sent */

void tcp_send_block(struct tcp_module *m, struct tcp_conn *c, bool blocked)
{
    if (c->blocked == blocked)
        return;
    c->blocked = blocked;
    m->n_blocked += blocked ? 1 : -1u;
    if (c->peer && !c->bulk && blocked)
        c->peer->ep.caps |= ST_BTL_FULL;
    else if (c->peer && !c->bulk)
        c->peer->ep.caps &= ~(uint32_t)ST_BTL_FULL;
    tcp_conn_watch(m, c);
}

void tcp_send_end(struct tcp_module *m, struct tcp_conn *c)
{
    c->broken = true;
    c->out_len = 0;
    tcp_send_block(m, c, false);
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* The reason is said by the peer's goodbye, if there was one. */
void tcp_send_broken(struct tcp_module *m, struct tcp_conn *c, const char *why)
{
    if (c->bulk) {
        tcp_bulk_broken(m, c, why);
        return;
    }
    tcp_send_end(m, c);
    tcp_conn_over(c);
    tcp_peer_lost(c->peer, c->peer->left ? "it has left the job" : why);
}

bool tcp_keep_room(struct tcp_module *m, struct tcp_conn *c, uint32_t n)
{
    size_t held = c->out_at + c->out_len, more = n > m->frame_max ? n : m->frame_max;
    char *out = realloc(c->out, held + more + TCP_ALIGN); /* a goodbye behind it */

    if (!out)
        return false;
    m->n_out += c->out == NULL;
    c->out = out;
    return true;
}

bool tcp_keep(struct tcp_module *m, struct tcp_conn *c, const void *bytes, uint32_t n)
{
    if (!c->out && !tcp_keep_room(m, c, 0))
        return false;
    if (n) /* the pointer of what is empty may be NULL */
        memcpy(c->out + c->out_at + c->out_len, bytes, n);
    c->out_len += n;
    return true;
}

void tcp_flush(struct tcp_module *m, struct tcp_conn *c)
{
    while (c->out_len) {
        ssize_t n = st_socket_write(c->fd, c->out + c->out_at, c->out_len);
        if (n < 0) {
            tcp_send_broken(m, c, "the connection was lost");
            return;
        }
        if (n == 0)
            return;
        c->out_at += (uint32_t)n;
        c->out_len -= (uint32_t)n;
    }
    c->out_at = 0;
    if (c->out) {
        free(c->out);
        c->out = NULL;
        m->n_out--;
    }
    if (!c->peer || tcp_rdma_go_on(m, c))
        tcp_send_block(m, c, false);
}

int tcp_send_unconnected(struct tcp_module *m, struct tcp_peer *p)
{
    int rc;

    if (!p->failed && p->left)
        tcp_peer_lost(p, "it has left the job");
    if (!p->failed && !p->conn && !p->dial) { /* a connection broke before it was used */
        rc = tcp_dial_begin(m, p);
        if (rc != STRATA_OK)
            tcp_peer_lost(p, strata_strerror(rc));
    }
    return p->failed ? STRATA_ERR_PEER : STRATA_ERR_AGAIN;
}

/* Of v the first `gone` bytes have been sent. */
static int send_keep_rest(struct tcp_module *m, struct tcp_conn *c, const struct iovec *v, int n, size_t gone)
{
    for (int i = 0; i < n; i++) {
        size_t skip = gone < v[i].iov_len ? gone : v[i].iov_len;
        gone -= skip;
        if (!tcp_keep(m, c, (const char *)v[i].iov_base + skip, (uint32_t)(v[i].iov_len - skip))) {
            tcp_send_broken(m, c, "no memory is left, in the middle of a message");
            return STRATA_ERR_PEER;
        }
    }
    tcp_send_block(m, c, true);
    return STRATA_OK;
}

/* The pieces as one, in buf: the kernel takes them faster. */
static void send_join(const struct msghdr *msg, char *buf, struct iovec *joined)
{
    *joined = (struct iovec){buf, 0};
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        if (msg->msg_iov[i].iov_len) /* the pointer of what is empty may be NULL */
            memcpy(buf + joined->iov_len, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
        joined->iov_len += msg->msg_iov[i].iov_len;
    }
}

static int send_refused(struct tcp_module *m, const struct tcp_conn *c)
{
    m->count.blocked++;
    if (c == tcp_bulk_now(c->peer))
        tcp_rdma_refused(c->peer);
    return STRATA_ERR_AGAIN;
}

/* By one of the peer's connections, which is up. */
static inline __attribute__((always_inline)) int send_by(struct tcp_module *m, struct tcp_conn *c, enum st_am am,
                                                         const void *hdr, uint32_t hdr_len, const void *data,
                                                         uint32_t len)
{
    static const char zeroes[TCP_ALIGN];
    struct tcp_peer *p = c->peer;
    struct tcp_frame frame = {
        .len = len, .kind = TCP_DATA, .am = (uint8_t)am, .hdr_len = (uint8_t)hdr_len, .done = tcp_rdma_done(p)};
    size_t all = tcp_frame_bytes(hdr_len, len);
    struct iovec v[4] = {{&frame, sizeof frame}, {(void *)(uintptr_t)hdr, hdr_len}};
    struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};
    char joined[JOINED];
    ssize_t n;
    int rc = STRATA_OK;

    if (c->blocked)
        return send_refused(m, c);
    if (len)
        v[msg.msg_iovlen++] = (struct iovec){(void *)(uintptr_t)data, len};
    if (all > sizeof frame + hdr_len + len)
        v[msg.msg_iovlen++] = (struct iovec){(void *)(uintptr_t)zeroes, all - sizeof frame - hdr_len - len};
    if (all <= sizeof joined) {
        struct iovec one;
        send_join(&msg, joined, &one);
        v[0] = one;
        msg.msg_iovlen = 1;
    }
    n = all <= sizeof joined ? st_socket_send(c->fd, joined, all) : st_socket_sendmsg(c->fd, &msg, 0);
    if (n == 0) {
        m->count.blocked++;
        tcp_send_block(m, c, true);
        return STRATA_ERR_AGAIN;
    }
    if (n < 0) {
        tcp_send_broken(m, c, strerror(errno));
        return STRATA_ERR_PEER;
    }
    if ((size_t)n < all)
        rc = send_keep_rest(m, c, v, (int)msg.msg_iovlen, (size_t)n);
    if (rc == STRATA_OK) {
        tcp_rdma_told(p);
        m->btl.bytes_sent += len;
        m->btl.messages_sent++;
    }
    return rc;
}

/* The second message of a turn, or one that ends the count. Messages with a computation in between are no burst. */
static void send_look_for_burst(struct tcp_module *m, struct tcp_peer *p)
{
    uint64_t now = st_now_ns();

    if (now - m->burst_ns > BURST_NS) {
        m->burst_ns = now;
        p->in_turn = p->in_turn < m->par->coalesce_at ? p->in_turn : 1;
    }
    if (p->in_turn >= m->par->coalesce_at && m->n_crowded < TCP_HOT) {
        m->crowded[m->n_crowded++] = p;
        p->ep.caps |= ST_BTL_CROWDED;
    }
}

/* A burst: more messages to a peer than a few between two rounds of progress, within a millisecond. Further ones that
 * nobody waits for had better share a frame, and with it the system calls at both ends, of which each costs more than
 * what they carry. */
static inline void send_note_burst(struct tcp_module *m, struct tcp_peer *p)
{
    if (p->turn != m->turn) {
        p->turn = m->turn;
        p->in_turn = 0;
    }
    if (p->in_turn < m->par->coalesce_at && (++p->in_turn == 2 || p->in_turn == m->par->coalesce_at))
        send_look_for_burst(m, p);
}

static bool send_is_connected(const struct tcp_peer *p)
{
    return p->conn && p->conn->state == TCP_UP && !p->conn->broken && !p->failed && !p->left;
}

int tcp_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
             uint32_t len)
{
    struct tcp_peer *p = (struct tcp_peer *)ep;
    int rc;

    if (ST_UNLIKELY(!send_is_connected(p)))
        return tcp_send_unconnected(tcp_of(ep->btl), p);
    rc = send_by(tcp_of(ep->btl), p->conn, am, hdr, hdr_len, data, len);
    if (rc == STRATA_OK)
        send_note_burst(tcp_of(ep->btl), p);
    return rc;
}

static int send_bulk(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                     const struct st_payload *payload)
{
    struct tcp_module *m = tcp_of(ep->btl);
    struct tcp_peer *p = (struct tcp_peer *)ep;
    struct tcp_conn *c = NULL;
    const void *data;
    int rc;

    if (send_is_connected(p))
        c = tcp_bulk_way(m, p);
    if (!send_is_connected(p)) /* the way may have been lost while it was looked for */
        return tcp_send_unconnected(m, p);
    if (!c) /* the second connection is on its way: by the first one parts would fill what messages need */
        return STRATA_ERR_AGAIN;
    if (c->state != TCP_UP || c->ended || c->broken)
        c = p->conn;
    if (c->blocked) /* before anything is packed */
        return send_refused(m, c);
    rc = st_btl_flatten(&m->btl, payload, &data);
    return rc == STRATA_OK ? send_by(m, c, am, hdr, hdr_len, data, (uint32_t)payload->length) : rc;
}

const struct st_btl_hints tcp_hints = {.send_bulk = send_bulk};

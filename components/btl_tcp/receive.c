/* Receiving: one read takes as many frames as have come. The buffer is the module's; a connection keeps it only while
 * a part of a frame is in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "bulk.h"
#include "rdma.h"
#include "tcp.h"

#define QUIET  256u  /* reads in a row that find nothing: no longer hot */
#define BEHIND 4096u /* bytes read with a piece of a put or get: the head of the next */

/* Whether a frame of its kind may look like that. */
static bool frame_fits(const struct tcp_frame *f)
{
    switch (f->kind) {
    case TCP_DATA:
        return f->am < ST_AM_COUNT && f->hdr_len <= ST_BTL_HDR_MAX;
    case TCP_PUT:
    case TCP_GOT:
        return f->hdr_len == sizeof(struct tcp_move) && f->len > 0;
    case TCP_GET:
        return f->hdr_len == sizeof(struct tcp_move) && f->len == 0;
    case TCP_GOODBYE:
    case TCP_DONE:
    case TCP_ASK_BULK:
    case TCP_NO_BULK:
        return f->hdr_len == 0 && f->len == 0;
    default:
        return false;
    }
}

int64_t tcp_frame_check(const struct tcp_module *m, const char *bytes, uint32_t n)
{
    struct tcp_frame f;
    uint32_t all;

    if (n < sizeof f)
        return 0;
    memcpy(&f, bytes, sizeof f);
    if (!frame_fits(&f) ||
        f.len > (tcp_is_piece(&f) ? TCP_PIECE_MAX + TCP_ALIGN : m->btl.max_send + ST_BTL_HDR_MAX - f.hdr_len))
        return -1;
    all = tcp_frame_bytes(f.hdr_len, f.len);
    return n < all ? 0 : all;
}

static void receive_heat(struct tcp_module *m, struct tcp_conn *c)
{
    uint32_t at = 0;

    c->quiet = 0;
    if (c->hot)
        return;
    if (m->n_hot < TCP_HOT) {
        at = m->n_hot++;
    } else {
        for (uint32_t i = 1; i < TCP_HOT; i++)
            if (m->hot[i]->quiet > m->hot[at]->quiet)
                at = i;
        m->hot[at]->hot = false;
    }
    m->hot[at] = c;
    c->hot = true;
}

static void receive_nothing(struct tcp_module *m, struct tcp_conn *c)
{
    if (!c->hot || ++c->quiet < QUIET)
        return;
    c->hot = false;
    for (uint32_t i = 0; i < m->n_hot; i++)
        if (m->hot[i] == c)
            m->hot[i--] = m->hot[--m->n_hot];
}

static char *receive_buffer(struct tcp_module *m, struct tcp_conn *c)
{
    char *buf = c->rx ? c->rx : m->spare;

    if (!c->rx)
        m->spare = NULL;
    return buf ? buf : aligned_alloc(64, m->rx_size);
}

/* The connection keeps it with `n` bytes of a frame, or else the module does. */
static void receive_put_back(struct tcp_module *m, struct tcp_conn *c, char *buf, uint32_t n)
{
    bool had = c->rx != NULL;

    c->rx = n ? buf : NULL;
    c->rx_len = n;
    m->n_rx += (uint64_t)(n != 0) - (uint64_t)had;
    if (n)
        return;
    if (m->spare)
        free(buf);
    else
        m->spare = buf;
}

static void receive_message(struct tcp_module *m, const struct tcp_conn *c, const struct tcp_frame *f,
                            const char *bytes)
{
    const char *hdr = bytes + sizeof *f;
    struct st_frag frag = {.hdr = hdr,
                           .data = hdr + f->hdr_len,
                           .hdr_len = f->hdr_len,
                           .len = f->len,
                           .rank = c->peer->ep.rank,
                           .btl = &m->btl};

    if (!m->closing)
        st_btl_deliver(&m->btl, (enum st_am)f->am, &frag);
}

/* A whole frame that is no piece. Returns NULL or what is wrong with it. */
static const char *receive_frame(struct tcp_module *m, struct tcp_conn *c, const struct tcp_frame *f, const char *bytes)
{
    const char *wrong = tcp_rdma_acked(m, c->peer, f->done);
    struct tcp_move move;

    if (wrong)
        return wrong;
    if (c->bulk && f->kind != TCP_GOODBYE && f->kind != TCP_DATA)
        return "it sends by the second connection what belongs to the first";
    if (f->kind == TCP_ASK_BULK || f->kind == TCP_NO_BULK)
        return tcp_bulk_told(m, c, f->kind);
    if (c->bulk && f->kind == TCP_GOODBYE) {
        c->ended = true;
    } else if (f->kind == TCP_GOODBYE) {
        c->peer->left = true;
        tcp_rdma_left(c->peer);
    } else if (f->kind == TCP_GET) {
        memcpy(&move, bytes + sizeof *f, sizeof move);
        return tcp_rdma_asked(m, c, &move);
    } else if (f->kind == TCP_DATA) {
        receive_message(m, c, f, bytes);
    }
    return NULL;
}

/* The piece at bytes, as far as it has come. *used: bytes that were taken; 0: more must come first. */
static const char *receive_piece(struct tcp_module *m, struct tcp_conn *c, const struct tcp_frame *f, const char *bytes,
                                 uint32_t n, uint32_t *used)
{
    const char *wrong = NULL;

    *used = 0;
    if (n < sizeof *f + sizeof(struct tcp_move))
        return NULL;
    wrong = tcp_rdma_acked(m, c->peer, f->done);
    return wrong ? wrong : tcp_take_begin(m, c, bytes, n, used);
}

/* The frames in buf. *at: where the rest begins. Returns how many; -1 where something is none, and then *why. */
static int receive_frames(struct tcp_module *m, struct tcp_conn *c, const char *buf, uint32_t n, uint32_t *at,
                          const char **why)
{
    int events = 0;

    *why = NULL;
    while (*at < n) {
        uint32_t skip = c->skip < n - *at ? c->skip : n - *at, used;
        int64_t all;
        struct tcp_frame f;
        *at += skip;
        c->skip = (uint8_t)(c->skip - skip);
        if (n - *at < sizeof f)
            break;
        memcpy(&f, buf + *at, sizeof f);
        all = tcp_frame_check(m, buf + *at, n - *at);
        if (all < 0) {
            *why = "it has sent what is no frame of btl_tcp";
        } else if (tcp_is_piece(&f)) {
            if (c->state == TCP_DEAD)
                break;
            *why = receive_piece(m, c, &f, buf + *at, n - *at, &used);
            all = used;
        } else if (f.kind == TCP_GOODBYE && !c->bulk && tcp_bulk_goes_on(c->peer)) {
            c->held = true;
            tcp_conn_watch(m, c);
            break;
        } else if (all > 0) {
            *why = receive_frame(m, c, &f, buf + *at);
        }
        if (*why)
            return -1;
        if (all == 0)
            break;
        *at += (uint32_t)all;
        events++;
    }
    return events;
}

/* One system call: the rest of a piece to its place, and what follows to buf. Bytes read; *rest: of those in buf. */
static ssize_t receive_read(struct tcp_module *m, struct tcp_conn *c, char *buf, uint32_t n, uint32_t *rest,
                            const char **why)
{
    struct iovec v[2] = {{buf + n, m->rx_size - n}};
    struct msghdr msg = {.msg_iov = v, .msg_iovlen = 1};
    uint32_t len = 0;
    char *to = NULL;
    ssize_t got;

    *rest = 0;
    if (tcp_is_taking(c)) {
        *why = tcp_take_where(m, c, &to, &len);
        if (*why)
            return -2;
        v[0] = to ? (struct iovec){to, len} : (struct iovec){buf, len < m->rx_size ? len : m->rx_size};
        v[1] = (struct iovec){buf, BEHIND};
        msg.msg_iovlen = to ? 2 : 1;
    } else if (n < 2 * TCP_ALIGN && tcp_expects_pieces(c)) { /* more of what is no piece would be there */
        v[0].iov_len = BEHIND;                               /* the piece that follows is not copied */
    }
    do /* recv is cheaper */
        got = msg.msg_iovlen == 1 ? recv(c->fd, v[0].iov_base, v[0].iov_len, MSG_DONTWAIT)
                                  : recvmsg(c->fd, &msg, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got;
    *rest = got > (ssize_t)len ? (uint32_t)got - len : 0;
    if (len)
        tcp_take_came(m, c, got < (ssize_t)len ? (uint32_t)got : len);
    return got;
}

/* Delivers the whole frames of the n bytes in buf, which it gives back. Returns as receive_once. */
static int receive_deliver(struct tcp_module *m, struct tcp_conn *c, char *buf, uint32_t n, const char **why)
{
    uint32_t at = 0;
    int events = receive_frames(m, c, buf, n, &at, why);

    n -= at;
    if (n && at)
        memmove(buf, buf + at, n);
    receive_put_back(m, c, buf, n);
    if (events < 0) {
        m->count.refused++;
        return -1;
    }
    return events > 0 ? events : 1;
}

/* One read. Returns 1 or the frames delivered, 0 where nothing has come, -1 at the connection's end, and then *why. */
static int receive_once(struct tcp_module *m, struct tcp_conn *c, const char **why)
{
    char *buf = receive_buffer(m, c);
    uint32_t n = c->rx ? c->rx_len : 0, rest;
    ssize_t got;

    if (!buf)
        return 0;  /* it comes again */
    if (c->held) { /* what it waited for has come */
        c->held = false;
        return receive_deliver(m, c, buf, n, why);
    }
    got = receive_read(m, c, buf, n, &rest, why);
    if (got <= 0) {
        bool nothing = got == -1 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (got > -2 && !nothing)
            *why = got < 0 ? strerror(errno) : "it has closed the connection without a goodbye";
        m->count.refused += got == -2;
        receive_put_back(m, c, buf, n);
        return nothing ? 0 : -1;
    }
    return receive_deliver(m, c, buf, n + rest, why);
}

/* The first connection of a pair goes before the second: it says when the pair is up, and leaves after it. */
static bool receive_waits(const struct tcp_conn *c)
{
    const struct tcp_conn *first = c->peer->conn;

    return c->bulk ? !first || first->state != TCP_UP : c->held && tcp_bulk_goes_on(c->peer);
}

/* A goodbye that waits for the second connection stays: reading finds it again and again. The second one does not wait
 * for the first, in whose place there may be a new one. */
void tcp_receive_rest(struct tcp_module *m, struct tcp_conn *c)
{
    const char *why;

    while (c->state != TCP_DEAD && (c->bulk || !receive_waits(c)) && receive_once(m, c, &why) > 0)
        ;
}

void tcp_receive_second(struct tcp_module *m, struct tcp_peer *p)
{
    if (m->closing || !p->bulk || p->bulk->state != TCP_UP)
        return;
    tcp_send_end(m, p->bulk); /* nothing comes any more */
    tcp_receive_rest(m, p->bulk);
}

int tcp_receive(struct tcp_module *m, struct tcp_conn *c)
{
    const char *why = "";
    int events;

    if (c->state == TCP_DEAD || receive_waits(c))
        return 0;
    events = receive_once(m, c, &why);
    if (c->state == TCP_DEAD) /* by who took a frame */
        return 1;
    if (events > 0) {
        receive_heat(m, c);
        if (c->bulk && !receive_waits(c)) /* messages are looked for as often as the parts that they pass */
            receive_heat(m, c->peer->conn);
    } else if (events == 0) {
        receive_nothing(m, c);
    } else {
        if (c == c->peer->conn)
            tcp_receive_second(m, c->peer);
        tcp_conn_lost(m, c, why);
    }
    return events < 0 ? 1 : events;
}

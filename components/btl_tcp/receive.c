/* Receiving: one read takes as many frames as have come. The buffer is the module's; a connection keeps it only while
 * a part of a frame is in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "tcp.h"

#define QUIET 256u /* reads in a row that find nothing: no longer hot */

int64_t tcp_frame_check(const struct tcp_module *m, const char *bytes, uint32_t n)
{
    struct tcp_frame f;
    uint32_t all;

    if (n < sizeof f)
        return 0;
    memcpy(&f, bytes, sizeof f);
    if ((f.kind != TCP_DATA && f.kind != TCP_GOODBYE) || f.am >= ST_AM_COUNT || f.hdr_len > ST_BTL_HDR_MAX ||
        f.len > m->btl.max_send + ST_BTL_HDR_MAX - f.hdr_len)
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

/* The frames in buf; returns how many, -1 where something is none. *at: where the rest begins. */
static int receive_frames(struct tcp_module *m, struct tcp_conn *c, const char *buf, uint32_t n, uint32_t *at)
{
    int events = 0;
    int64_t all;

    while ((all = tcp_frame_check(m, buf + *at, n - *at)) > 0) {
        struct tcp_frame f;
        memcpy(&f, buf + *at, sizeof f);
        if (f.kind == TCP_GOODBYE) {
            c->peer->left = true;
        } else {
            const char *hdr = buf + *at + sizeof f;
            struct st_frag frag = {.hdr = hdr,
                                   .data = hdr + f.hdr_len,
                                   .hdr_len = f.hdr_len,
                                   .len = f.len,
                                   .rank = c->peer->ep.rank,
                                   .btl = &m->btl};
            if (!m->closing)
                st_btl_deliver(&m->btl, (enum st_am)f.am, &frag);
        }
        *at += (uint32_t)all;
        events++;
    }
    return all < 0 ? -1 : events;
}

/* One read. Returns 1 or the frames delivered, 0 where nothing has come, -1 at the connection's end, and then *why. */
static int receive_once(struct tcp_module *m, struct tcp_conn *c, const char **why)
{
    char *buf = receive_buffer(m, c);
    uint32_t n = c->rx ? c->rx_len : 0, at = 0;
    ssize_t got;
    int events;

    if (!buf)
        return 0; /* it comes again */
    do
        got = recv(c->fd, buf + n, m->rx_size - n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got <= 0) {
        bool nothing = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        *why = got < 0 ? strerror(errno) : "it has closed the connection without a goodbye";
        receive_put_back(m, c, buf, n);
        return nothing ? 0 : -1;
    }
    n += (uint32_t)got;
    events = receive_frames(m, c, buf, n, &at);
    n -= at;
    if (n && at)
        memmove(buf, buf + at, n);
    receive_put_back(m, c, buf, n);
    if (events < 0) {
        m->count.refused++;
        *why = "it has sent what is no frame of btl_tcp";
        return -1;
    }
    return events > 0 ? events : 1;
}

int tcp_receive(struct tcp_module *m, struct tcp_conn *c)
{
    const char *why;
    int events = receive_once(m, c, &why);

    if (c->state == TCP_DEAD) /* by who took a frame */
        return 1;
    if (events > 0)
        receive_heat(m, c);
    else if (events == 0)
        receive_nothing(m, c);
    else
        tcp_conn_lost(m, c, why);
    return events < 0 ? 1 : events;
}

void tcp_receive_rest(struct tcp_module *m, struct tcp_conn *c)
{
    const char *why;

    while (c->state != TCP_DEAD && receive_once(m, c, &why) > 0)
        ;
}

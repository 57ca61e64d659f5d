/* Puts and gets on their way out: pieces as frames. A piece is sent from the memory of who put it, or of the
 * registration that is got from; a frame that the socket takes in part only is gone on with when there is room. */
#include <errno.h>
#include <string.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "bulk.h"
#include "rdma.h"

/* Payload of a frame at most. A longer call is faster, up to some length (docs/measured/tcp.md). */
static size_t out_piece(const struct tcp_module *m, const struct tcp_rdma *r)
{
    size_t most = m->par->piece & ~(size_t)(TCP_ALIGN - 1);

    return r->peer->way == TCP_WAY_FIRST && most > TCP_SHARED ? TCP_SHARED : most;
}

/* The next frame of a job. False: the memory is not registered any more. */
static bool out_prepare(struct tcp_module *m, struct tcp_rdma *r, struct tcp_job *job)
{
    size_t left = job->len - job->at, most = out_piece(m, r), len = left < most ? left : most;
    struct tcp_move move = {.address = job->remote + job->at, .key = job->key, .id = job->id};
    struct tcp_frame frame = {.hdr_len = sizeof move};

    if (job->kind == TCP_JOB_PUT) {
        frame.kind = TCP_PUT;
        r->payload = job->local + job->at;
        move.what = (uint8_t)((len == left ? TCP_LAST : 0) | (len == left && job->notify ? TCP_NOTICE : 0));
        move.word = job->word;
    } else {
        frame.kind = TCP_GOT;
        r->payload = tcp_reg_find(m, &job->key, job->remote + job->at, len, false);
        move.address = job->at;
        move.key = (struct tcp_key){0};
        if (!r->payload)
            return false;
    }
    move.lead = (uint8_t)((uintptr_t)r->payload & (TCP_ALIGN - 1));
    frame.len = (uint32_t)len + move.lead;
    r->head.frame = frame;
    r->head.move = move;
    r->len = (uint32_t)len;
    r->gone = 0;
    r->sending = job;
    return true;
}

/* The rest of the frame, as pieces; returns their number. */
static int out_pieces(const struct tcp_rdma *r, struct iovec v[4])
{
    static const char zeroes[TCP_ALIGN];
    uint32_t all = tcp_frame_bytes(sizeof r->head.move, r->head.frame.len), gone = r->gone;
    const struct iovec whole[4] = {{(void *)(uintptr_t)&r->head, sizeof r->head},
                                   {(void *)(uintptr_t)zeroes, r->head.move.lead},
                                   {(void *)(uintptr_t)r->payload, r->len},
                                   {(void *)(uintptr_t)zeroes, all - sizeof r->head - r->head.frame.len}};
    int n = 0;

    for (int i = 0; i < 4; i++) {
        size_t skip = gone < whole[i].iov_len ? gone : whole[i].iov_len;
        gone -= (uint32_t)skip;
        if (whole[i].iov_len > skip)
            v[n++] = (struct iovec){(char *)whole[i].iov_base + skip, whole[i].iov_len - skip};
    }
    return n;
}

/* The frame has gone. */
static void out_sent(struct tcp_module *m, struct tcp_rdma *r)
{
    struct tcp_job *job = r->sending;

    r->sending = NULL;
    job->at += r->len;
    if (job->at == job->len && job->kind == TCP_JOB_PUT) {
        st_list_remove(&job->node);
        job->id = ++r->n_sent;
        st_list_append(&r->sent, &job->node);
    } else if (job->at == job->len) {
        m->btl.bytes_sent += job->len;
        tcp_job_end(m, r, job, STRATA_OK);
    } else if (job->node.next != &r->out) { /* others take turns with it */
        st_list_remove(&job->node);
        st_list_append(&r->out, &job->node);
    }
}

/* One call: the frame's rest, or where that goes without a copy first its head, whose memory is used again. */
static ssize_t out_call(struct tcp_module *m, struct tcp_conn *c, struct tcp_rdma *r)
{
    struct iovec v[4];
    struct msghdr msg = {.msg_iov = v};

    msg.msg_iovlen = (size_t)out_pieces(r, v);
    if (!r->without || r->gone >= sizeof r->head)
        return tcp_zerocopy_send(m, c, r, &msg, r->without);
    msg.msg_iovlen = 1;
    return st_socket_sendmsg(c->fd, &msg, MSG_MORE);
}

bool tcp_rdma_go_on(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_rdma *r = c->peer->rdma;
    bool head;

    if (!r || !r->sending || tcp_bulk_now(c->peer) != c)
        return true;
    do {
        ssize_t n = out_call(m, c, r);
        head = r->without && r->gone < sizeof r->head;
        if (n < 0) {
            tcp_send_broken(m, c, strerror(errno));
            return false;
        }
        r->gone += (uint32_t)n;
    } while (head && r->gone == sizeof r->head);
    if (r->gone < tcp_frame_bytes(sizeof r->head.move, r->head.frame.len))
        return false;
    out_sent(m, r);
    return true;
}

bool tcp_rdma_keep_rest(struct tcp_module *m, struct tcp_peer *p)
{
    struct tcp_rdma *r = p->rdma;
    struct tcp_conn *c = tcp_bulk_now(p);
    struct iovec v[4];
    int n;

    if (!r || !r->sending || !c)
        return true;
    if (!tcp_keep_room(m, c, tcp_frame_bytes(sizeof r->head.move, r->head.frame.len) - r->gone))
        return false;
    n = out_pieces(r, v);
    for (int i = 0; i < n; i++)
        if (!tcp_keep(m, c, v[i].iov_base, (uint32_t)v[i].iov_len))
            return false;
    out_sent(m, r);
    return true;
}

/* One frame; false: nothing more now. */
static bool out_frame(struct tcp_module *m, struct tcp_rdma *r, struct tcp_conn *c)
{
    struct tcp_job *job = ST_CONTAINER(r->out.next, struct tcp_job, node);

    if (!out_prepare(m, r, job)) {
        tcp_send_broken(m, c, "memory that it gets is not registered any more");
        return false;
    }
    r->head.frame.done = r->n_taken;
    r->without = tcp_zerocopy_wants(m, c, r, r->len);
    if (tcp_rdma_go_on(m, c)) {
        r->due = 0;
        return true;
    }
    if (c->broken)
        return false;
    if (r->gone == 0)
        r->sending = NULL; /* it begins anew */
    else
        r->due = 0;
    m->count.blocked++;
    tcp_send_block(m, c, true);
    return false;
}

/* A frame of TCP_ALIGN bytes by the first connection. False: it has not gone. */
static bool out_short(struct tcp_module *m, struct tcp_conn *c, const void *frame)
{
    struct iovec v = {(void *)(uintptr_t)frame, TCP_ALIGN};
    struct msghdr msg = {.msg_iov = &v, .msg_iovlen = 1};
    ssize_t n = st_socket_sendmsg(c->fd, &msg, 0);

    if (n < 0) {
        tcp_send_broken(m, c, strerror(errno));
        return false;
    }
    if (n == TCP_ALIGN)
        return true;
    if (n > 0 && !tcp_keep(m, c, (const char *)frame + n, (uint32_t)(TCP_ALIGN - n))) {
        tcp_send_broken(m, c, "no memory is left, in the middle of a frame");
        return false;
    }
    tcp_send_block(m, c, true);
    return n > 0;
}

static bool out_can_send(const struct tcp_conn *c)
{
    return c && c->state == TCP_UP && !c->blocked && !c->broken && !c->ended;
}

/* Asks for the memory of gets. Returns frames. */
static int out_asks(struct tcp_module *m, struct tcp_rdma *r)
{
    struct tcp_conn *c = r->peer->conn;
    struct st_node *n;
    int events = 0;

    while (out_can_send(c) && (n = st_list_first(&r->asks)) != NULL) {
        struct tcp_job *job = ST_CONTAINER(n, struct tcp_job, node);
        struct {
            struct tcp_frame frame;
            struct tcp_move move;
        } ask = {{.kind = TCP_GET, .hdr_len = sizeof ask.move, .done = r->n_taken},
                 {.address = job->remote, .key = job->key, .length = job->len, .id = job->id}};
        if (!out_short(m, c, &ask))
            break;
        r->due = 0;
        st_list_remove(&job->node);
        st_list_append(&r->gets, &job->node);
        events++;
    }
    return events;
}

int tcp_rdma_run(struct tcp_module *m, struct tcp_rdma *r)
{
    int events = out_asks(m, r);
    struct tcp_conn *c = st_list_empty(&r->out) ? NULL : tcp_bulk_way(m, r->peer);
    uint32_t bytes = 0;

    if (!out_can_send(c))
        return events;
    if (r->refused) {
        r->refused = false;
        return events + 1; /* who was refused tries again in this round */
    }
    while (bytes < TCP_TURN && !st_list_empty(&r->out) && out_frame(m, r, c)) {
        bytes += TCP_ALIGN + r->len;
        events++;
    }
    return events;
}

void tcp_rdma_say(struct tcp_module *m, struct tcp_rdma *r)
{
    struct tcp_conn *c = r->peer->conn;
    union {
        struct tcp_frame frame;
        char whole[TCP_ALIGN];
    } f = {.whole = ""};

    if (!out_can_send(c) || (!r->say && r->due < 2))
        return;
    f.frame.kind = r->say ? r->say : TCP_DONE;
    f.frame.done = r->n_taken;
    if (out_short(m, c, &f))
        r->due = r->say = 0;
}

bool tcp_rdma_has_room(const struct tcp_rdma *r)
{
    const struct tcp_peer *p = r->peer;

    if (out_can_send(p->conn) && (r->due || r->say || !st_list_empty(&r->asks)))
        return true;
    if (st_list_empty(&r->out))
        return false;
    return p->way == TCP_WAY_OPEN ? out_can_send(p->conn) : out_can_send(tcp_bulk_now(p));
}

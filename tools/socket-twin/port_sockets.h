/* The measuring loops' view of a bare TCP connection: see tools/strata-perf/port_strata.h. Two ranks; messages are
 * received in the order in which they were sent, one system call for each at least. */
#ifndef PERF_PORT_SOCKETS_H
#define PERF_PORT_SOCKETS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "coll_options.h"

#define PORT_NAME "sockets"

/* Messages of one direction that are under way. */
struct port_queue {
    struct port_piece {
        char *at;
        size_t left;
    } * piece;
    size_t n, head, room;
};

struct port {
    int rank, n;
    double t_init, t_ready;
    long private_after_init;
    int fd; /* connected; its calls are made not to wait */
    struct port_queue out, in;
};
typedef char port_req; /* waited for all at once */

static __attribute__((noreturn, cold, noinline)) void port_fail(struct port *p, const char *what, int rc)
{
    fprintf(stderr, "sockets twin: rank %d: %s%s%s\n", p->rank, what, rc ? ": " : "", rc ? strerror(rc) : "");
    exit(1);
}

/* Bytes that went, or 0 where none could go now. */
static inline size_t port_try_send(struct port *p, const char *buf, size_t len)
{
    ssize_t n = send(p->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        port_fail(p, "send", errno);
    return n < 0 ? 0 : (size_t)n;
}

static inline size_t port_try_recv(struct port *p, char *buf, size_t len)
{
    ssize_t n = recv(p->fd, buf, len, MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        port_fail(p, "recv", errno);
    if (n == 0)
        port_fail(p, "the other rank has ended", 0);
    return n < 0 ? 0 : (size_t)n;
}

static inline void port_send(struct port *p, const void *buf, size_t len, int dst, int tag)
{
    (void)dst, (void)tag;
    for (size_t at = 0; at < len;)
        at += port_try_send(p, (const char *)buf + at, len - at);
}

static inline void port_recv(struct port *p, void *buf, size_t len, int src, int tag)
{
    (void)src, (void)tag;
    for (size_t at = 0; at < len;)
        at += port_try_recv(p, (char *)buf + at, len - at);
}

static inline void port_queue_add(struct port *p, struct port_queue *q, void *buf, size_t len)
{
    if (len == 0)
        return;
    if (q->n == q->room) {
        size_t room = q->room ? 2 * q->room : 128;
        struct port_piece *more = realloc(q->piece, room * sizeof *more);
        if (!more)
            port_fail(p, "out of memory", 0);
        q->piece = more;
        q->room = room;
    }
    q->piece[q->n++] = (struct port_piece){buf, len};
}

/* As much of the queue as goes now. */
static inline void port_queue_go(struct port *p, struct port_queue *q, bool out)
{
    while (q->head < q->n) {
        struct port_piece *m = &q->piece[q->head];
        size_t n = out ? port_try_send(p, m->at, m->left) : port_try_recv(p, m->at, m->left);
        if (n == 0)
            return;
        m->at += n;
        m->left -= n;
        q->head += m->left == 0;
    }
    q->n = q->head = 0;
}

static inline void port_isend(struct port *p, const void *buf, size_t len, int dst, int tag, port_req *req)
{
    (void)dst, (void)tag, (void)req;
    port_queue_add(p, &p->out, (void *)(uintptr_t)buf, len);
}

static inline void port_irecv(struct port *p, void *buf, size_t len, int src, int tag, port_req *req)
{
    (void)src, (void)tag, (void)req;
    port_queue_add(p, &p->in, buf, len);
}

static inline void port_waitall(struct port *p, size_t n, port_req *reqs)
{
    (void)n, (void)reqs;
    while (p->out.n || p->in.n) {
        port_queue_go(p, &p->out, true);
        port_queue_go(p, &p->in, false);
    }
}

static inline void port_sendrecv(struct port *p, const void *sbuf, void *rbuf, size_t len, int dst, int src, int tag)
{
    port_isend(p, sbuf, len, dst, tag, NULL);
    port_irecv(p, rbuf, len, src, tag, NULL);
    port_waitall(p, 2, NULL);
}

static inline void port_coll(struct port *p, enum perf_coll_op op, const void *sbuf, void *rbuf, size_t bytes)
{
    (void)op, (void)sbuf, (void)rbuf, (void)bytes;
    port_fail(p, "a connection has no collectives", 0); /* coll is refused before */
}

#endif

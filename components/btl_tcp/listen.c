/* The listener: it accepts a bounded number of callers that have not proved who they are. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "tcp.h"

#define PAUSE  (100 * TCP_MS) /* in accepting, when descriptors have run out */
#define YOUNG  (500 * TCP_MS) /* a caller that came later is not sent away to make room, though it has said nothing */
#define ACCEPT 16             /* callers in one round */

int tcp_listen(struct tcp_module *m, bool loopback, char *why, size_t why_size)
{
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = NULL}};
    uint16_t first, last;

    if (!tcp_ports_parse(m->par->ports, &first, &last)) {
        snprintf(why, why_size, "btl_tcp_ports = \"%s\": neither FIRST-LAST nor a number from 1 to 65535",
                 m->par->ports);
        return STRATA_ERR_PARAM;
    }
    m->listener = st_socket_listen_in(loopback, first, last, &m->card.port);
    if (m->listener < 0 && errno == EADDRINUSE && first) {
        snprintf(why, why_size,
                 "all ports of btl_tcp_ports = %s are taken: give at least as many as processes of this machine",
                 m->par->ports);
        return STRATA_ERR_SYSTEM;
    }
    m->events = m->listener < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
    if (m->events < 0 || epoll_ctl(m->events, EPOLL_CTL_ADD, m->listener, &e) != 0) {
        snprintf(why, why_size, "no socket that listens: %s%s", strerror(errno),
                 errno == EMFILE ? " (see ulimit -n)" : "");
        return STRATA_ERR_SYSTEM;
    }
    return STRATA_OK;
}

/* Else a caller that cannot be accepted would wake every sleep. */
void tcp_listen_pause(struct tcp_module *m, uint64_t ns)
{
    struct epoll_event off = {.data = {.ptr = NULL}};

    if (!m->accept_at)
        (void)epoll_ctl(m->events, EPOLL_CTL_MOD, m->listener, &off);
    m->accept_at = st_now_ns() + ns;
}

void tcp_listen_again(struct tcp_module *m)
{
    struct epoll_event on = {.events = EPOLLIN, .data = {.ptr = NULL}};

    m->accept_at = 0;
    (void)epoll_ctl(m->events, EPOLL_CTL_MOD, m->listener, &on);
}

/* Sends the oldest caller away that has said no whole HELLO, unless it has just come. One that was challenged has its
 * whole time: on a crowded machine its answer takes a turn of all processes. The list is in order of arrival. */
static bool listen_make_room(struct tcp_module *m)
{
    uint64_t come_by = st_now_ns() - YOUNG + (uint64_t)m->par->handshake_timeout_ms * TCP_MS;

    for (struct st_node *n = m->conns.next; n != &m->conns; n = n->next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        if (c->peer)
            continue;
        if (c->deadline > come_by)
            return false;
        if (tcp_meet_late(m, c))
            return m->n_strangers < (uint32_t)m->par->strangers;
        if (c->state == TCP_CHALLENGED)
            continue;
        m->count.refused++;
        tcp_conn_close(m, c);
        return true;
    }
    return false;
}

void tcp_accept(struct tcp_module *m)
{
    for (int i = 0; i < ACCEPT; i++) {
        struct tcp_conn *c;
        int fd;
        if (m->n_strangers >= (uint32_t)m->par->strangers && !listen_make_room(m)) {
            tcp_listen_pause(m, PAUSE);
            return;
        }
        fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                if (!m->told_exhausted)
                    st_log(m->btl.context, ST_LOG_WARN, "btl_tcp",
                           "a caller cannot be accepted: %s (see ulimit -n); trying again", strerror(errno));
                m->told_exhausted = true;
                tcp_listen_pause(m, PAUSE);
                return;
            }
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            return;
        }
        tcp_set_socket(m, fd);
        c = tcp_conn_make(m, fd, NULL, TCP_ACCEPTED);
        if (c)
            c->deadline = st_now_ns() + (uint64_t)m->par->handshake_timeout_ms * TCP_MS;
    }
}

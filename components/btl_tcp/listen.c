/* The listener: where it listens, and callers that have not proved who they are, a bounded number at a time. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tcp.h"

#define PAUSE  (100 * TCP_MS)  /* in accepting, when descriptors have run out */
#define YOUNG  (500 * TCP_MS)  /* a caller that came later is not sent away to make room, though it has said nothing */
#define SLOW   (1000 * TCP_MS) /* nor is one that came later and was challenged */
#define ACCEPT 16              /* callers of a socket in one round */
#define TRIES  32u             /* ports of the kernel's choice, until one is free at all addresses */

/* ---- sockets ---- */

void tcp_listen_end(struct tcp_module *m)
{
    while (m->n_listeners > 0) {
        int fd = m->listener[--m->n_listeners];
        (void)shutdown(fd, SHUT_RDWR); /* callers would wait at the one that a forked child has */
        (void)close(fd);
    }
}

/* A socket at each address of the card, all at this port; 0: any. An address that the kernel still checks for being
 * unique, as it does with IPv6, has none. False: errno says why. */
static bool listen_each(struct tcp_module *m, uint16_t port)
{
    m->card.port = port;
    for (uint32_t i = 0; i < m->card.n; i++) {
        struct sockaddr_storage at;
        socklen_t n = st_socket_address(m->card.address[i].ip, m->card.port, &at);
        int fd = st_socket_listen_at((const struct sockaddr *)&at, n), error = errno;
        if (fd >= 0) {
            m->listener[m->n_listeners++] = fd;
            m->card.port = m->card.port ? m->card.port : st_socket_port(fd);
            error = errno;
        }
        if (fd >= 0 ? m->card.port == 0 : error != EADDRNOTAVAIL) {
            tcp_listen_end(m);
            errno = error;
            return false;
        }
    }
    return m->n_listeners > 0;
}

static bool listen_at_card(struct tcp_module *m, uint16_t first, uint16_t last)
{
    uint32_t tries = first ? last - first + 1u : TRIES;
    bool done = false;

    errno = EADDRINUSE;
    for (uint32_t i = 0; i < tries && !done && errno == EADDRINUSE; i++)
        done = listen_each(m, (uint16_t)(first ? first + i : 0));
    return done;
}

static bool listen_everywhere(struct tcp_module *m, uint16_t first, uint16_t last)
{
    int fd = st_socket_listen_in(false, first, last, &m->card.port);

    if (fd >= 0)
        m->listener[m->n_listeners++] = fd;
    return fd >= 0;
}

/* Sets the events of the listeners that epoll reports. */
static bool listen_events(struct tcp_module *m, int op, uint32_t events)
{
    struct epoll_event e = {.events = events, .data = {.ptr = NULL}};
    bool done = true;

    for (uint32_t i = 0; i < m->n_listeners; i++)
        done = epoll_ctl(m->events, op, m->listener[i], &e) == 0 && done;
    return done;
}

/* Each process of a machine listens at one port for each of its links. */
static void listen_exhausted(const struct tcp_module *m, char *why, size_t why_size)
{
    uint32_t links = tcp_interfaces(m->card.address, m->card.n);
    int n = 0;

    (void)m->rte->ops->local_ranks(m->rte, &n);
    links = links > (uint32_t)m->par->links ? (uint32_t)m->par->links : links;
    links = links > 0 ? links : 1;
    snprintf(why, why_size,
             "all ports of btl_tcp_ports = %s are taken: this job needs %u here, one for each of %d processes and %u "
             "links (btl_tcp_links)",
             m->par->ports, (uint32_t)n * links, n, links);
}

int tcp_listen(struct tcp_module *m, bool everywhere, char *why, size_t why_size)
{
    uint16_t first, last;
    bool done;

    if (!tcp_ports_parse(m->par->ports, &first, &last)) {
        snprintf(why, why_size, "btl_tcp_ports = \"%s\": neither FIRST-LAST nor a number from 1 to 65535",
                 m->par->ports);
        return STRATA_ERR_PARAM;
    }
    done = everywhere ? listen_everywhere(m, first, last) : listen_at_card(m, first, last);
    if (!done && errno == EADDRINUSE && first) {
        listen_exhausted(m, why, why_size);
        return STRATA_ERR_SYSTEM;
    }
    m->events = done ? epoll_create1(EPOLL_CLOEXEC) : -1;
    if (m->events < 0 || !listen_events(m, EPOLL_CTL_ADD, EPOLLIN)) {
        snprintf(why, why_size, "no socket that listens: %s%s", strerror(errno),
                 errno == EMFILE ? " (see ulimit -n)" : "");
        return STRATA_ERR_SYSTEM;
    }
    return STRATA_OK;
}

/* ---- callers ---- */

/* Else a caller that cannot be accepted would wake every sleep. */
void tcp_listen_pause(struct tcp_module *m, uint64_t ns)
{
    if (!m->accept_at)
        (void)listen_events(m, EPOLL_CTL_MOD, 0);
    m->accept_at = st_now_ns() + ns;
}

void tcp_listen_again(struct tcp_module *m)
{
    m->accept_at = 0;
    (void)listen_events(m, EPOLL_CTL_MOD, EPOLLIN);
}

/* Whether a caller came so long ago; time in which this process did not look does not count. */
static bool listen_is_old(const struct tcp_module *m, const struct tcp_conn *c, uint64_t age)
{
    return c->deadline + age <= st_now_ns() + (uint64_t)m->par->handshake_timeout_ms * TCP_MS;
}

/* Sends a caller away: the oldest that has said no whole HELLO, unless it has just come. Else one that was challenged.
 * On a crowded machine an answer takes a turn of all processes, but a HELLO needs no secret: the older half has its
 * whole time, of the others the oldest goes when it has had a second. The list is in order of arrival. */
static bool listen_make_room(struct tcp_module *m)
{
    struct tcp_conn *slow = NULL;
    uint32_t kept = (uint32_t)m->par->strangers / 2;

    for (struct st_node *n = m->conns.next; n != &m->conns; n = n->next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        if (c->peer)
            continue;
        if (!listen_is_old(m, c, YOUNG))
            break;
        if (tcp_meet_late(m, c))
            return m->n_strangers < (uint32_t)m->par->strangers;
        if (c->state == TCP_ACCEPTED) {
            slow = c;
            break;
        }
        if (kept > 0)
            kept--;
        else if (!slow && listen_is_old(m, c, SLOW))
            slow = c;
    }
    if (!slow)
        return false;
    m->count.refused++;
    tcp_conn_close(m, slow);
    return true;
}

static bool listen_is_called(int listener)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

/* False: no more callers for now. */
static bool accept_from(struct tcp_module *m, int listener)
{
    for (int i = 0; i < ACCEPT; i++) {
        struct tcp_conn *c;
        int fd;
        if (m->n_strangers >= (uint32_t)m->par->strangers) {
            if (!listen_is_called(listener))
                return true;
            if (!listen_make_room(m)) {
                tcp_listen_pause(m, PAUSE);
                return false;
            }
        }
        fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                if (!m->told_exhausted)
                    st_log(m->btl.context, ST_LOG_WARN, "btl_tcp",
                           "a caller cannot be accepted: %s (see ulimit -n); trying again", strerror(errno));
                m->told_exhausted = true;
                tcp_listen_pause(m, PAUSE);
                return false;
            }
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            return true;
        }
        tcp_set_socket(m, fd);
        c = tcp_conn_make(m, fd, NULL, TCP_ACCEPTED);
        if (c)
            c->deadline = st_now_ns() + (uint64_t)m->par->handshake_timeout_ms * TCP_MS;
    }
    return true;
}

void tcp_accept(struct tcp_module *m)
{
    for (uint32_t i = 0; i < m->n_listeners && accept_from(m, m->listener[i]); i++)
        ;
}

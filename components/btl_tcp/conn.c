/* Connections: made, watched, closed. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "bulk.h"
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

static uint32_t conn_events(const struct tcp_conn *c)
{
    bool reads = !c->held || !tcp_bulk_goes_on(c->peer);

    return (reads ? (uint32_t)EPOLLIN : 0u) | (c->state == TCP_DIALLED || c->blocked ? (uint32_t)EPOLLOUT : 0u);
}

void tcp_conn_watch(struct tcp_module *m, const struct tcp_conn *c)
{
    struct epoll_event e = {.events = conn_events(c), .data = {.ptr = (void *)(uintptr_t)c}};

    (void)epoll_ctl(m->events, EPOLL_CTL_MOD, c->fd, &e);
}

struct tcp_conn *tcp_conn_make(struct tcp_module *m, int fd, struct tcp_peer *peer, uint8_t state)
{
    struct tcp_conn *c = calloc(1, sizeof *c);
    struct epoll_event e = {.data = {.ptr = c}};

    if (c) {
        c->fd = fd;
        c->peer = peer;
        c->state = state;
        c->dialled = peer != NULL;
        e.events = conn_events(c);
    }
    if (!c || epoll_ctl(m->events, EPOLL_CTL_ADD, fd, &e) != 0) {
        int error = c ? errno : ENOMEM;
        (void)close(fd);
        free(c);
        errno = error;
        return NULL;
    }
    st_list_append(&m->conns, &c->node);
    m->n_conns++;
    m->n_meeting++;
    m->n_strangers += peer == NULL;
    return c;
}

static void conn_cool(struct tcp_module *m, struct tcp_conn *c)
{
    for (uint32_t i = 0; i < m->n_hot; i++)
        if (m->hot[i] == c)
            m->hot[i--] = m->hot[--m->n_hot];
    c->hot = false;
}

void tcp_conn_close(struct tcp_module *m, struct tcp_conn *c)
{
    if (c->state == TCP_DEAD)
        return;
    m->dial_at = 0; /* a peer may have to be dialled again */
    if (!c->peer)
        m->n_strangers--;
    else if (c->bulk)
        c->peer->bulk = c->peer->bulk == c ? NULL : c->peer->bulk;
    else if (c->peer->conn == c)
        c->peer->conn = NULL;
    else if (c->dialled)
        tcp_dial_tried(c);
    if (c->blocked)
        m->n_blocked--;
    if (c->blocked && c->peer && !c->bulk)
        c->peer->ep.caps &= ~(uint32_t)ST_BTL_FULL;
    c->blocked = false;
    m->n_meeting -= c->state < TCP_UP;
    if (c->peer && c->state == TCP_UP)
        tcp_rdma_leave(c->peer, c);
    c->state = TCP_DEAD;
    conn_cool(m, c);
    /* A child that was forked may have the socket as well: closing alone would not tell the other side. */
    (void)epoll_ctl(m->events, EPOLL_CTL_DEL, c->fd, NULL);
    (void)shutdown(c->fd, SHUT_RDWR);
    (void)close(c->fd);
    c->fd = -1;
    m->n_conns--;
    st_list_remove(&c->node);
    st_list_append(&m->dead, &c->node);
    if (c->peer && !c->bulk && !c->peer->conn)
        tcp_bulk_drop(m, c->peer);
}

void tcp_conn_over(const struct tcp_conn *c)
{
    if (c->peer->epoch <= c->epoch)
        c->peer->epoch = c->epoch + 1;
}

void tcp_conn_lost(struct tcp_module *m, struct tcp_conn *c, const char *why)
{
    struct tcp_peer *p = c->peer;
    uint8_t state = c->state;
    bool unsent = c->out_len > 0;

    if (state == TCP_DEAD)
        return;
    if (c->bulk && p) {
        tcp_bulk_lost(m, c, why);
        return;
    }
    /* TCP_CHOSEN: the other end may have been up. */
    if (p && (state == TCP_UP || state == TCP_CHOSEN))
        tcp_conn_over(c);
    tcp_conn_close(m, c);
    if (!p) {
        m->count.refused++;
    } else if (state == TCP_UP) {
        m->count.broken += !p->left;
        if (!p->left)
            tcp_peer_lost(p, why);
        else if (unsent || tcp_rdma_waits(p))
            tcp_peer_lost(p, "it has left before it had taken all that was sent to it");
    } else if (c->dialled) {
        tcp_dial_failed(p, c, why);
    }
}

/* What was closed may be on the stack of who closed it, and in a list of events. */
void tcp_conn_bury(struct tcp_module *m)
{
    struct st_node *n;

    while ((n = st_list_pop(&m->dead)) != NULL) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        m->n_rx -= c->rx != NULL;
        m->n_out -= c->out != NULL;
        free(c->rx);
        free(c->out);
        free(c);
    }
}

/* The other end's address, for reports, which may come after the connection. */
static void conn_keep_address(const struct tcp_conn *c)
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof at;
    uint8_t *ip = c->peer->address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&at;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&at;

    if (getpeername(c->fd, (struct sockaddr *)&at, &n) != 0)
        return;
    memset(ip, 0, 16);
    if (at.ss_family == AF_INET) {
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &v4->sin_addr, 4);
    } else {
        memcpy(ip, &v6->sin6_addr, 16);
    }
}

/* The other ones of the pair are closed: of those the peer has chosen none. */
void tcp_conn_up(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;

    c->state = TCP_UP;
    c->deadline = 0;
    m->n_meeting--;
    p->silent = 0;
    tcp_rdma_renew(p);
    conn_keep_address(c);
    tcp_dial_end(p);
    for (struct st_node *n = m->conns.next, *next; n != &m->conns && p->trying; n = next) {
        struct tcp_conn *other = ST_CONTAINER(n, struct tcp_conn, node);
        next = n->next;
        if (other->peer == p && other != c && !other->bulk)
            tcp_conn_close(m, other);
    }
}

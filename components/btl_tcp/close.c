/* Closing: a goodbye to each peer, and time for the peers' kernels to take what was sent. A socket that is closed with
 * data unread would throw away the data that it has not sent. */
#define _GNU_SOURCE 1
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

static void close_say_goodbye(struct tcp_module *m, struct tcp_conn *c)
{
    union {
        struct tcp_frame frame;
        char whole[TCP_ALIGN];
    } goodbye = {.whole = ""};

    goodbye.frame.kind = TCP_GOODBYE;
    goodbye.frame.done = tcp_rdma_done(c->peer);
    if (c->broken || !tcp_rdma_keep_rest(m, c->peer) || !tcp_keep(m, c, &goodbye, sizeof goodbye)) {
        tcp_conn_close(m, c);
        return;
    }
    tcp_flush(m, c);
}

/* True when nothing of what was sent can get lost any more. What arrives is for nobody. */
static bool close_is_done(struct tcp_module *m, struct tcp_conn *c)
{
    char nothing[4096];
    int unsent = 0;
    ssize_t n;

    tcp_flush(m, c);
    for (int i = 0; i < 256 && (n = st_socket_read(c->fd, nothing, sizeof nothing)) > 0; i++)
        ;
    return c->broken || n < 0 || (c->out_len == 0 && (ioctl(c->fd, SIOCOUTQ, &unsent) != 0 || unsent == 0));
}

/* A goodbye that cannot be sent ends other connections of its peer as well, which may be any in the list: those that
 * were told wait in another one. */
static void close_begin(struct tcp_module *m)
{
    struct st_node told, *n;

    st_list_init(&told);
    while ((n = st_list_pop(&m->conns)) != NULL) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        st_list_append(&told, n);
        if (c->state == TCP_UP || c->state == TCP_CHOSEN)
            close_say_goodbye(m, c);
        else
            tcp_conn_close(m, c);
    }
    while ((n = st_list_pop(&told)) != NULL)
        st_list_append(&m->conns, n);
}

static void close_connections(struct tcp_module *m)
{
    uint64_t until = st_now_ns() + (uint64_t)m->par->close_timeout_ms * TCP_MS;

    close_begin(m);
    for (;;) {
        bool late = st_now_ns() >= until;
        for (struct st_node *n = m->conns.next, *next; n != &m->conns; n = next) {
            struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
            next = n->next;
            if (close_is_done(m, c) || late)
                tcp_conn_close(m, c);
        }
        if (st_list_empty(&m->conns))
            return;
        (void)poll(NULL, 0, 1);
    }
}

void tcp_close(struct st_btl *btl)
{
    struct tcp_module *m = tcp_of(btl);

    m->closing = true;
    st_counters_remove(btl->context, &m->counting);
    tcp_listen_end(m);
    close_connections(m);
    tcp_conn_bury(m);
    for (int64_t r = 0; (r = st_rank_table_next(&m->peers, (uint32_t)r)) >= 0; r++) {
        struct tcp_peer *p = st_rank_table_get(&m->peers, (uint32_t)r);
        tcp_dial_end(p);
        tcp_rdma_free(p);
        free(p);
    }
    st_rank_table_destroy(&m->peers);
    if (m->events >= 0)
        (void)close(m->events);
    tcp_rdma_fini(m);
    free(m->spare);
    free(m);
}

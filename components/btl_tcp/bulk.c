/* The second connection of a pair: pieces of puts and answers and fragments of long messages go by it, so that messages
 * do not wait behind them. Who has dialled the first one dials it as well, at the same address, when either end has
 * something to send by it: that way is known to work, and no two are made. Its handshake is the first one's, and names
 * the epoch. Where it cannot be had the pieces go by the first connection; when it breaks the first one is over, too.
 */
#include <errno.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include "bulk.h"
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

#define SYNS 2 /* sent again, some seven seconds in all: the first connection came about by the same address */

/* The other end is told so, or asked, by the next progress. */
static bool bulk_say(struct tcp_module *m, struct tcp_peer *p, uint8_t kind)
{
    struct tcp_rdma *r = tcp_rdma_of(m, p);

    if (!r)
        return false;
    r->say = kind;
    tcp_rdma_make_busy(m, r);
    return true;
}

/* By the dialler of the first connection: there will be none. */
static void bulk_give_up(struct tcp_module *m, struct tcp_peer *p)
{
    p->way = TCP_WAY_FIRST;
    if (!bulk_say(m, p, TCP_NO_BULK) && p->conn)
        tcp_send_broken(m, p->conn, "no memory is left to say that puts go by the first connection");
}

static void bulk_dial(struct tcp_module *m, struct tcp_peer *p)
{
    struct tcp_conn *c = NULL;
    struct tcp_card card;
    int fd = -1, tries = SYNS;

    if (m->par->bulk && tcp_card_get(m, p->ep.rank, m->link, &card) == STRATA_OK)
        fd = st_socket_dial(p->address, card.port);
    if (fd >= 0) {
        m->count.dials++;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &tries, sizeof tries);
        tcp_set_socket(m, fd);
        c = tcp_conn_make(m, fd, p, TCP_DIALLED);
    }
    if (!c) {
        bulk_give_up(m, p);
        return;
    }
    c->bulk = true;
    c->deadline = tcp_dial_step(m, p, st_now_ns());
    p->bulk = c;
}

static bool bulk_is_up(const struct tcp_peer *p)
{
    return p->bulk && p->bulk->state == TCP_UP;
}

struct tcp_conn *tcp_bulk_way(struct tcp_module *m, struct tcp_peer *p)
{
    if (p->way == TCP_WAY_OPEN && p->conn && p->conn->state == TCP_UP) {
        p->way = TCP_WAY_WANTED;
        if (bulk_is_up(p))
            p->way = TCP_WAY_BULK;
        else if (!p->conn->dialled && (!m->par->bulk || !bulk_say(m, p, TCP_ASK_BULK)))
            p->way = TCP_WAY_FIRST;
        else if (p->conn->dialled && !p->bulk)
            bulk_dial(m, p);
    }
    return tcp_bulk_now(p);
}

void tcp_bulk_up(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;

    c->state = TCP_UP;
    c->deadline = 0;
    m->n_meeting--;
    p->silent = 0;
    m->count.bulk++;
    if (p->way == TCP_WAY_WANTED)
        p->way = TCP_WAY_BULK;
    tcp_conn_watch(m, c);
}

void tcp_bulk_met(struct tcp_module *m, struct tcp_conn *c)
{
    static const struct tcp_head ready = {TCP_MAGIC, TCP_READY, TCP_ACCEPT};
    struct tcp_peer *p = c->peer;
    const struct tcp_conn *first = p->conn;

    if (!m->par->bulk || !first || first->broken || first->dialled || first->epoch != c->epoch || p->bulk || p->left ||
        tcp_conn_is_over(c) || st_socket_write(c->fd, &ready, sizeof ready) != (ssize_t)sizeof ready) {
        tcp_conn_close(m, c);
        return;
    }
    p->bulk = c;
    if (p->far)
        tcp_set_keepalive(m, c->fd);
    tcp_bulk_up(m, c);
}

const char *tcp_bulk_told(struct tcp_module *m, struct tcp_conn *c, uint8_t kind)
{
    struct tcp_peer *p = c->peer;

    if (p->conn != c || c->broken || m->closing)
        return NULL;
    if (c->dialled != (kind == TCP_ASK_BULK))
        return "it speaks of a second connection like the other side";
    if (kind == TCP_NO_BULK)
        p->way = p->way == TCP_WAY_BULK ? TCP_WAY_BULK : TCP_WAY_FIRST;
    else if (p->way == TCP_WAY_FIRST)
        bulk_give_up(m, p);
    else if (!p->bulk)
        bulk_dial(m, p);
    return NULL;
}

void tcp_bulk_broken(struct tcp_module *m, struct tcp_conn *c, const char *why)
{
    struct tcp_conn *first = c->peer->conn;

    if (m->closing) {
        tcp_bulk_lost(m, c, why);
        return;
    }
    tcp_send_end(m, c);
    if (!c->ended && first && first->state == TCP_UP && !first->held && !first->broken)
        tcp_send_broken(m, first, why);
}

void tcp_bulk_lost(struct tcp_module *m, struct tcp_conn *c, const char *why)
{
    struct tcp_peer *p = c->peer;
    struct tcp_conn *first = p->conn;
    bool used = c->state == TCP_UP;

    c->broken = true;
    tcp_conn_close(m, c);
    if (m->closing || !first || first->broken || first->state == TCP_DEAD)
        return;
    if (c->ended || first->held) {
        tcp_conn_watch(m, first); /* its goodbye waits no more */
    } else if (!used) {
        bulk_give_up(m, p);
    } else if (first->state == TCP_UP) {
        tcp_send_broken(m, first, why);
    } else {
        tcp_conn_lost(m, first, why);
    }
}

void tcp_bulk_expired(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;
    struct tcp_conn *first = p->conn;

    tcp_conn_close(m, c);
    if (first && first->held)
        tcp_conn_watch(m, first); /* its goodbye waits no more */
    else if (first && first->state == TCP_UP && !first->broken)
        bulk_dial(m, p);
}

void tcp_bulk_drop(struct tcp_module *m, struct tcp_peer *p)
{
    if (m->closing) /* what was sent by it is still on its way */
        return;
    p->way = TCP_WAY_OPEN;
    if (bulk_is_up(p) && p->conn && p->conn->broken) { /* both are read to their ends */
        tcp_send_end(m, p->bulk);
    } else if (p->bulk) {
        p->bulk->broken = true;
        tcp_conn_close(m, p->bulk);
    }
    if (p->conn && p->conn->held)
        tcp_conn_watch(m, p->conn);
}

bool tcp_bulk_goes_on(const struct tcp_peer *p)
{
    return p->bulk && (p->bulk->state == TCP_CHOSEN || p->bulk->state == TCP_UP) && !p->bulk->ended;
}

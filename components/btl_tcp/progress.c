/* Progress: the hot connections are read directly, the others when epoll says so. Time-outs; going to sleep. */
#include <strata/sdk/clock.h>
#include <strata/sdk/hint.h>
#include <sys/epoll.h>
#include "dial.h"
#include "rdma.h"
#include "tcp.h"

#define EVENTS      16
#define COLD_EVERY  32u            /* rounds in which no hot connection had anything, for one look at epoll */
#define SWEEP_EVERY (10 * TCP_MS)  /* of deadlines */
#define ABSENT      (500 * TCP_MS) /* between two looks: this process did something else, or had no processor */

static int progress_conn(struct tcp_module *m, struct tcp_conn *c, uint32_t what)
{
    if (c->state == TCP_DEAD)
        return 0;
    if (c->state == TCP_DIALLED)
        return what & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? tcp_meet_writable(m, c) : 0;
    if (what & EPOLLERR)
        tcp_zerocopy_reap(m, c);
    if (c->blocked && what & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        tcp_flush(m, c);
    if (c->state < TCP_UP)
        return what & (EPOLLIN | EPOLLERR | EPOLLHUP) ? tcp_meet_readable(m, c) : 0;
    return what & (EPOLLIN | EPOLLERR | EPOLLHUP) ? tcp_receive(m, c) : 1;
}

static void progress_deadlines(struct tcp_module *m, uint64_t now)
{
    for (struct st_node *n = m->conns.next, *next; n != &m->conns; n = next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        next = n->next;
        if (c->deadline && now > c->deadline) {
            if (!tcp_meet_late(m, c))
                tcp_meet_expired(m, c);
            next = m->conns.next; /* others of that peer may have gone with it */
        }
    }
}

/* Time in which this process did not look: bytes that came meanwhile may not have been read yet, and others may have
 * waited for a processor as long. From one look to the next half a second counts at most. */
static void progress_absent(struct tcp_module *m, uint64_t now)
{
    uint64_t ns = m->looked ? now - m->looked : 0;

    m->looked = now;
    if (ns <= ABSENT)
        return;
    ns -= ABSENT;
    tcp_dial_absent(m, ns);
    for (struct st_node *n = m->conns.next; n != &m->conns; n = n->next) {
        struct tcp_conn *c = ST_CONTAINER(n, struct tcp_conn, node);
        c->deadline += c->deadline ? ns : 0;
    }
}

static void progress_time(struct tcp_module *m)
{
    uint64_t now = st_now_ns();

    progress_absent(m, now);
    tcp_silence_look(m, now);
    if (m->n_meeting == 0 && !m->accept_at && st_list_empty(&m->dialling) && st_list_empty(&m->waiting))
        return;
    if (m->accept_at && now > m->accept_at)
        tcp_listen_again(m);
    tcp_dials_go_on(m, now);
    if (now > m->swept + SWEEP_EVERY) {
        m->swept = now;
        progress_deadlines(m, now);
    }
}

static int progress_cold(struct tcp_module *m)
{
    struct epoll_event e[EVENTS];
    int n = epoll_wait(m->events, e, EVENTS, 0), events = 0;

    for (int i = 0; i < n; i++) {
        if (e[i].data.ptr)
            events += progress_conn(m, e[i].data.ptr, e[i].events);
        else
            tcp_accept(m);
    }
    progress_time(m);
    return events;
}

int tcp_progress(struct st_btl *btl)
{
    struct tcp_module *m = tcp_of(btl);
    int events = 0;

    m->turn++;
    m->burst_ns = 0;
    while (ST_UNLIKELY(m->n_crowded))
        m->crowded[--m->n_crowded]->ep.caps &= ~(uint32_t)ST_BTL_CROWDED;
    for (uint32_t i = m->n_hot; i-- > 0;)
        if (i < m->n_hot)
            events += tcp_receive(m, m->hot[i]);
    if (m->n_hot == 0 || m->n_blocked > 0 || m->turn % (events ? 4 * COLD_EVERY : COLD_EVERY) == 0)
        events += progress_cold(m);
    if (tcp_rdma_due(m))
        events += tcp_rdma_progress(m);
    if (!st_list_empty(&m->dead))
        tcp_conn_bury(m);
    return events;
}

/* Arrivals, connections and room are all told by epoll. */
int tcp_arm(struct st_btl *btl, struct st_btl_wait *w)
{
    w->fd = tcp_of(btl)->events;
    return tcp_rdma_may_sleep(tcp_of(btl)) ? STRATA_OK : STRATA_ERR_AGAIN;
}

void tcp_disarm(struct st_btl *btl)
{
    (void)btl;
}

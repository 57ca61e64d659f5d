/* Connecting by sockets, out of band (the paper, section 5.2.1): each process listens at a port that its card names,
 * and whoever has something to say dials, unless a line to that rank is there. Nothing blocks. The number of lines, the
 * memory of each and the time that it may take to say who is calling are bounded, whoever calls. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/socket.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <strata/sdk/clock.h>
#include "module.h"
#include "methods/tcp_line.h"

#define SECOND      1000000000ull
#define MAX_LINES   256u         /* to ranks; the one that was used least recently makes room */
#define MAX_UNKNOWN 64u          /* callers without a rank so far; the oldest makes room */
#define SAY_WITHIN  (5 * SECOND) /* for a caller to say who it is, and for any begun frame to be whole */
#define DIAL_WITHIN (3 * SECOND) /* for an address to answer, before the next one is tried */
#define KEEP_FOR    (2 * SECOND) /* a line that is not used */
#define SWEEP_EVERY (SECOND / 10)
#define PAUSE       (SECOND / 10) /* in accepting, when descriptors have run out */

struct ib_tcp {
    int listener, events;
    struct st_node lines, dead; /* struct ib_tcp_line */
    uint64_t numbers;           /* of lines, ever */
    uint32_t n_known, n_unknown;
    uint64_t swept, paused; /* ns; paused: 0 when it accepts */
};

static struct ib_tcp *tcp_state(const struct ib_module *m)
{
    return m->oob.state[IB_METHOD_TCP];
}

/* ---- lines ---- */

/* Freed later, since callers look at it. A child that this process has forked may have the socket, too: closing alone
 * would neither tell the other side nor take it out of the poll set. */
static void line_hang_up(struct ib_tcp *t, struct ib_tcp_line *line)
{
    if (line->fd < 0)
        return;
    (void)epoll_ctl(t->events, EPOLL_CTL_DEL, line->fd, NULL);
    (void)shutdown(line->fd, SHUT_RDWR);
    (void)close(line->fd);
    line->fd = -1;
    *(line->rank < 0 ? &t->n_unknown : &t->n_known) -= 1;
    st_list_remove(&line->node);
    st_list_append(&t->dead, &line->node);
}

static void lines_free(struct st_node *list)
{
    struct st_node *n;

    while ((n = st_list_pop(list)) != NULL)
        free(ST_CONTAINER(n, struct ib_tcp_line, node));
}

/* Hangs up the line, with a rank or without one, that was used least recently. */
static bool line_make_room(struct ib_tcp *t, bool known)
{
    struct ib_tcp_line *oldest = NULL;

    for (struct st_node *n = t->lines.next; n != &t->lines; n = n->next) {
        struct ib_tcp_line *line = ST_CONTAINER(n, struct ib_tcp_line, node);
        if ((line->rank >= 0) == known && line->n_out == 0 && (!oldest || line->used < oldest->used))
            oldest = line;
    }
    if (oldest)
        line_hang_up(t, oldest);
    return oldest != NULL;
}

static void line_listen(struct ib_tcp *t, struct ib_tcp_line *line, int op)
{
    bool out = line->connecting || line->n_out > 0;
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data = {.u64 = line->number}};

    if (op == EPOLL_CTL_ADD || out != line->listens)
        (void)epoll_ctl(t->events, op, line->fd, &e);
    line->listens = out;
}

static struct ib_tcp_line *line_add(struct ib_tcp *t, int fd, int rank, uint64_t now)
{
    bool known = rank >= 0;
    uint32_t *n = known ? &t->n_known : &t->n_unknown;
    struct ib_tcp_line *line = NULL;

    if (*n < (known ? MAX_LINES : MAX_UNKNOWN) || line_make_room(t, known))
        line = calloc(1, sizeof *line);
    if (!line) {
        (void)close(fd);
        return NULL;
    }
    line->number = ++t->numbers;
    line->fd = fd;
    line->rank = rank;
    line->dialled = line->connecting = known;
    line->used = now;
    line->deadline = now + (known ? DIAL_WITHIN : SAY_WITHIN);
    ++*n;
    st_list_append(&t->lines, &line->node);
    line_listen(t, line, EPOLL_CTL_ADD);
    return line;
}

/* NULL: the line has gone. An event names the line that was there when it was asked for. */
static struct ib_tcp_line *line_numbered(const struct ib_tcp *t, uint64_t number)
{
    for (struct st_node *n = t->lines.next; n != &t->lines; n = n->next) {
        struct ib_tcp_line *line = ST_CONTAINER(n, struct ib_tcp_line, node);
        if (line->number == number)
            return line;
    }
    return NULL;
}

/* One that is connected, if there is one. */
static struct ib_tcp_line *line_find(const struct ib_tcp *t, int rank)
{
    struct ib_tcp_line *found = NULL;

    for (struct st_node *n = t->lines.next; n != &t->lines; n = n->next) {
        struct ib_tcp_line *line = ST_CONTAINER(n, struct ib_tcp_line, node);
        if (line->rank == rank && (!found || found->connecting))
            found = line;
    }
    return found;
}

/* ---- saying ---- */

/* The peer's addresses in turn, on this machine loopback first; NULL: it has published none. */
static const uint8_t *tcp_address(const struct ib_module *m, const struct ib_wire_up *w)
{
    const uint8_t *all[IB_ADDRESSES + 1];
    static const uint8_t none[16];
    uint32_t n = 0;

    if (m->rte->ops->is_local(m->rte, w->peer->ep.rank))
        all[n++] = st_socket_loopback;
    for (uint32_t i = 0; i < IB_ADDRESSES; i++)
        if (memcmp(w->card.address[i], none, 16) != 0)
            all[n++] = w->card.address[i];
    return n ? all[w->addresses % n] : NULL;
}

static struct ib_tcp_line *line_dial(struct ib_module *m, struct ib_wire_up *w)
{
    const uint8_t *address = tcp_address(m, w);
    int fd = address ? st_socket_dial(address, w->card.tcp_port) : -1;

    if (fd < 0) {
        if (address && errno != EMFILE && errno != ENFILE)
            w->addresses++;
        return NULL;
    }
    return line_add(tcp_state(m), fd, w->peer->ep.rank, st_now_ns());
}

static int tcp_send(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c)
{
    struct ib_tcp *t = tcp_state(m);
    struct ib_tcp_line *line = line_find(t, w->peer->ep.rank);

    if (!line)
        line = line_dial(m, w);
    if (!line || !ib_tcp_queue(line, c))
        return STRATA_ERR_AGAIN;
    line->used = st_now_ns();
    if (!line->connecting && !ib_tcp_write(line)) {
        line_hang_up(t, line);
        return STRATA_ERR_AGAIN;
    }
    line_listen(t, line, EPOLL_CTL_MOD);
    return STRATA_OK;
}

/* ---- hearing ---- */

/* A line of ours has ended. When nobody of the job has ever spoken on it, the address was a wrong one. */
static void line_lost(struct ib_module *m, struct ib_tcp_line *line)
{
    const struct ib_peer *p = ib_peer_find(m, line->rank);

    if (line->dialled && !line->heard && p && p->up)
        p->up->addresses++;
    line_hang_up(tcp_state(m), line);
}

static void line_refuse(struct ib_module *m, struct ib_tcp_line *line)
{
    m->count.refused++;
    line_lost(m, line);
}

static void line_frame(struct ib_module *m, struct ib_tcp_line *line)
{
    struct ib_tcp *t = tcp_state(m);
    struct ib_conn c = line->in.frame.conn;

    line->deadline = 0;
    line->used = st_now_ns();
    if (line->rank >= 0 ? c.from != line->rank : c.from < 0) {
        line_refuse(m, line);
        return;
    }
    if (line->rank < 0 && c.key == m->card.key && c.to == m->rte->rank) { /* so that it can be answered */
        if (t->n_known >= MAX_LINES)
            (void)line_make_room(t, true);
        line->rank = c.from;
        t->n_unknown--;
        t->n_known++;
    }
    if (!m->oob.take(m, &ib_method_tcp, &c))
        line_lost(m, line);
    else
        line->heard = true;
}

static void line_readable(struct ib_module *m, struct ib_tcp_line *line)
{
    /* A frame at a time, a few of them: nobody keeps us here. */
    for (int i = 0; i < 8 && line->fd >= 0; i++) {
        switch (ib_tcp_read(line)) {
        case IB_TCP_NOTHING:
            if (line->n_in && !line->deadline)
                line->deadline = st_now_ns() + SAY_WITHIN;
            return;
        case IB_TCP_FRAME:
            line_frame(m, line);
            break;
        case IB_TCP_ENDED:
            line_lost(m, line);
            return;
        case IB_TCP_INVALID:
            line_refuse(m, line);
            return;
        }
    }
}

static void line_writable(struct ib_module *m, struct ib_tcp_line *line)
{
    int error = 0;
    socklen_t n = sizeof error;

    if (line->connecting) {
        if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error) {
            line_lost(m, line);
            return;
        }
        line->connecting = false;
        /* A listener may be anybody. */
        line->deadline = st_now_ns() + SAY_WITHIN;
    }
    if (!ib_tcp_write(line)) {
        line_lost(m, line);
        return;
    }
    line_listen(tcp_state(m), line, EPOLL_CTL_MOD);
}

static void tcp_accept(struct ib_tcp *t)
{
    struct epoll_event off = {.data = {.u64 = 0}};

    for (uint32_t i = 0; i < MAX_UNKNOWN; i++) {
        int fd = accept4(t->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)line_add(t, fd, -1, st_now_ns());
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* Else it would wake every sleep. */
            (void)epoll_ctl(t->events, EPOLL_CTL_MOD, t->listener, &off);
            t->paused = st_now_ns();
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void tcp_sweep(struct ib_module *m, struct ib_tcp *t, uint64_t now)
{
    struct epoll_event on = {.events = EPOLLIN, .data = {.u64 = 0}};

    for (struct st_node *n = t->lines.next, *next; n != &t->lines; n = next) {
        struct ib_tcp_line *line = ST_CONTAINER(n, struct ib_tcp_line, node);
        next = n->next;
        if (line->deadline && now > line->deadline && (line->rank < 0 || line->n_in))
            line_refuse(m, line);
        else if (line->deadline && now > line->deadline && line->dialled && !line->heard)
            line_lost(m, line);
        /* The end that dialled hangs up; should that get lost, this one does, later. */
        else if (line->rank >= 0 && now > line->used + (line->dialled ? KEEP_FOR : 5 * KEEP_FOR))
            line_hang_up(t, line);
    }
    if (t->paused && now > t->paused + PAUSE) {
        t->paused = 0;
        (void)epoll_ctl(t->events, EPOLL_CTL_MOD, t->listener, &on);
    }
    t->swept = now;
}

static int tcp_poll(struct ib_module *m)
{
    struct ib_tcp *t = tcp_state(m);
    struct epoll_event e[16];
    int n = epoll_wait(t->events, e, 16, 0);
    uint64_t now;

    for (int i = 0; i < n; i++) {
        struct ib_tcp_line *line = line_numbered(t, e[i].data.u64);
        if (!line) {
            if (e[i].data.u64 == 0)
                tcp_accept(t);
            continue;
        }
        if ((e[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) && (line->connecting || line->n_out))
            line_writable(m, line);
        if (line->fd >= 0 && !line->connecting)
            line_readable(m, line);
    }
    now = st_now_ns();
    if (now > t->swept + SWEEP_EVERY)
        tcp_sweep(m, t, now);
    lines_free(&t->dead);
    return n > 0 ? n : 0;
}

/* ---- life ---- */

static bool tcp_all_local(const struct ib_module *m)
{
    int n = 0;

    (void)m->rte->ops->local_ranks(m->rte, &n);
    return n > 0 && n == m->rte->size;
}

static int tcp_open(struct ib_module *m, char *why, size_t why_size)
{
    struct ib_tcp *t = calloc(1, sizeof *t);
    struct epoll_event e = {.events = EPOLLIN, .data = {.u64 = 0}};
    static const uint8_t none[16];
    bool here = tcp_all_local(m);

    if (!t)
        return STRATA_ERR_NOMEM;
    m->oob.state[IB_METHOD_TCP] = t;
    st_list_init(&t->lines);
    st_list_init(&t->dead);
    t->listener = st_socket_listen(here, &m->card.tcp_port);
    t->events = epoll_create1(EPOLL_CLOEXEC);
    if (t->listener < 0 || t->events < 0 || epoll_ctl(t->events, EPOLL_CTL_ADD, t->listener, &e) != 0 ||
        ib_wait_on(m, t->events) != STRATA_OK) {
        snprintf(why, why_size, "btl_openib_connect=tcp: no socket that listens: %s", strerror(errno));
        return STRATA_ERR_SYSTEM;
    }
    if (here)
        return STRATA_OK;
    st_socket_addresses(m->card.address, IB_ADDRESSES);
    if (memcmp(m->card.address[0], none, 16) == 0) {
        snprintf(why, why_size, "btl_openib_connect=tcp: no network interface but loopback is up");
        return STRATA_ERR_UNSUPPORTED;
    }
    return STRATA_OK;
}

static void tcp_close(struct ib_module *m)
{
    struct ib_tcp *t = tcp_state(m);
    struct st_node *n;

    if (!t)
        return;
    while ((n = st_list_first(&t->lines)) != NULL)
        line_hang_up(t, ST_CONTAINER(n, struct ib_tcp_line, node));
    lines_free(&t->dead);
    if (t->listener >= 0) {
        (void)shutdown(t->listener, SHUT_RDWR); /* or callers would wait at the one that a child has */
        (void)close(t->listener);
    }
    if (t->events >= 0)
        (void)close(t->events);
    free(t);
    m->oob.state[IB_METHOD_TCP] = NULL;
    m->card.tcp_port = 0;
}

static size_t tcp_bytes(const struct ib_module *m)
{
    const struct ib_tcp *t = tcp_state(m);

    return sizeof *t + (t->n_known + t->n_unknown) * sizeof(struct ib_tcp_line);
}

const struct ib_method ib_method_tcp = {.name = "tcp",
                                        .mask = 15,
                                        .open = tcp_open,
                                        .close = tcp_close,
                                        .send = tcp_send,
                                        .poll = tcp_poll,
                                        .bytes = tcp_bytes};

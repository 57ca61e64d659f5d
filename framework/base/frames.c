/* Frames between processes: see sdk/frames.h. Lines are found by rank, and events name their line. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include "framework/base/frame_line.h"

#define SECOND      1000000000ull
#define MAX_LINES   256u         /* to ranks; the one that was used least recently makes room */
#define MAX_UNKNOWN 64u          /* callers without a rank so far; the oldest makes room */
#define SAY_WITHIN  (5 * SECOND) /* for a caller to say who it is, and for any begun frame to be whole */
#define DIAL_WITHIN (3 * SECOND) /* for an address to answer, before the next one is tried */
#define KEEP_FOR    (2 * SECOND) /* a line that is not used */
#define SWEEP_EVERY (SECOND / 10)
#define PAUSE       (SECOND / 10) /* in accepting, when descriptors have run out */

struct st_frames {
    struct st_frames_owner owner;
    int listener, events;
    struct st_node lines, dead; /* struct frame_line */
    uint32_t n_known, n_unknown;
    uint64_t swept, paused; /* ns; paused: 0 when it accepts */
};

/* ---- lines ---- */

/* Freed later, since callers look at it. A child that this process has forked may have the socket, too: closing alone
 * would neither tell the other side nor take it out of the poll set. */
static void line_hang_up(struct st_frames *f, struct frame_line *line)
{
    if (line->fd < 0)
        return;
    (void)epoll_ctl(f->events, EPOLL_CTL_DEL, line->fd, NULL);
    (void)shutdown(line->fd, SHUT_RDWR);
    (void)close(line->fd);
    line->fd = -1;
    *(line->rank < 0 ? &f->n_unknown : &f->n_known) -= 1;
    st_list_remove(&line->node);
    st_list_append(&f->dead, &line->node);
}

static void lines_free(struct st_node *list)
{
    struct st_node *n;

    while ((n = st_list_pop(list)) != NULL)
        free(ST_CONTAINER(n, struct frame_line, node));
}

/* Hangs up the line, with a rank or without one, that was used least recently. */
static bool line_make_room(struct st_frames *f, bool known)
{
    struct frame_line *oldest = NULL;

    for (struct st_node *n = f->lines.next; n != &f->lines; n = n->next) {
        struct frame_line *line = ST_CONTAINER(n, struct frame_line, node);
        if ((line->rank >= 0) == known && line->n_out == 0 && (!oldest || line->used < oldest->used))
            oldest = line;
    }
    if (oldest)
        line_hang_up(f, oldest);
    return oldest != NULL;
}

static void line_listen(struct st_frames *f, struct frame_line *line, int op)
{
    bool out = line->connecting || line->n_out > 0;
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data = {.ptr = line}};

    if (op == EPOLL_CTL_ADD || out != line->listens)
        (void)epoll_ctl(f->events, op, line->fd, &e);
    line->listens = out;
}

static struct frame_line *line_add(struct st_frames *f, int fd, int rank, uint64_t now)
{
    bool known = rank >= 0;
    uint32_t *n = known ? &f->n_known : &f->n_unknown;
    struct frame_line *line = NULL;

    if (*n < (known ? MAX_LINES : MAX_UNKNOWN) || line_make_room(f, known))
        line = frame_line_make(f->owner.magic, f->owner.size, fd);
    if (!line) {
        (void)close(fd);
        return NULL;
    }
    line->rank = rank;
    line->dialled = line->connecting = known;
    line->used = now;
    line->deadline = now + (known ? DIAL_WITHIN : SAY_WITHIN);
    ++*n;
    st_list_append(&f->lines, &line->node);
    line_listen(f, line, EPOLL_CTL_ADD);
    return line;
}

/* One that is connected, if there is one. */
static struct frame_line *line_find(const struct st_frames *f, int rank)
{
    struct frame_line *found = NULL;

    for (struct st_node *n = f->lines.next; n != &f->lines; n = n->next) {
        struct frame_line *line = ST_CONTAINER(n, struct frame_line, node);
        if (line->rank == rank && (!found || found->connecting))
            found = line;
    }
    return found;
}

/* ---- hearing ---- */

/* A line of ours has ended. When nobody of the job has ever spoken on it, the address was a wrong one. */
static void line_lost(struct st_frames *f, struct frame_line *line)
{
    if (line->dialled && !line->heard)
        f->owner.in_vain(f->owner.arg, line->rank);
    line_hang_up(f, line);
}

static void line_refuse(struct st_frames *f, struct frame_line *line)
{
    f->owner.refused(f->owner.arg);
    line_lost(f, line);
}

static void line_frame(struct st_frames *f, struct frame_line *line)
{
    int rank = -1;
    bool believed = f->owner.sender(f->owner.arg, frame_line_frame(line), &rank);

    line->deadline = 0;
    line->used = st_now_ns();
    if (line->rank >= 0 ? rank != line->rank : rank < 0) {
        line_refuse(f, line);
        return;
    }
    if (line->rank < 0 && believed) { /* so that it can be answered */
        if (f->n_known >= MAX_LINES)
            (void)line_make_room(f, true);
        line->rank = rank;
        f->n_unknown--;
        f->n_known++;
    }
    if (!f->owner.take(f->owner.arg, frame_line_frame(line)))
        line_lost(f, line);
    else
        line->heard = true;
}

static void line_readable(struct st_frames *f, struct frame_line *line)
{
    /* A frame at a time, a few of them: nobody keeps us here. */
    for (int i = 0; i < 8 && line->fd >= 0; i++) {
        switch (frame_line_read(line)) {
        case FRAME_NOTHING:
            if (line->n_in && !line->deadline)
                line->deadline = st_now_ns() + SAY_WITHIN;
            return;
        case FRAME_WHOLE:
            line_frame(f, line);
            break;
        case FRAME_ENDED:
            line_lost(f, line);
            return;
        case FRAME_INVALID:
            line_refuse(f, line);
            return;
        }
    }
}

static void line_writable(struct st_frames *f, struct frame_line *line)
{
    int error = 0;
    socklen_t n = sizeof error;

    if (line->connecting) {
        if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error) {
            line_lost(f, line);
            return;
        }
        line->connecting = false;
        /* A listener may be anybody. */
        line->deadline = st_now_ns() + SAY_WITHIN;
    }
    if (!frame_line_write(line)) {
        line_lost(f, line);
        return;
    }
    line_listen(f, line, EPOLL_CTL_MOD);
}

static void frames_accept(struct st_frames *f)
{
    struct epoll_event off = {.data = {.ptr = NULL}};

    for (uint32_t i = 0; i < MAX_UNKNOWN; i++) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)line_add(f, fd, -1, st_now_ns());
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* Else it would wake every sleep. */
            (void)epoll_ctl(f->events, EPOLL_CTL_MOD, f->listener, &off);
            f->paused = st_now_ns();
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void frames_sweep(struct st_frames *f, uint64_t now)
{
    struct epoll_event on = {.events = EPOLLIN, .data = {.ptr = NULL}};

    for (struct st_node *n = f->lines.next, *next; n != &f->lines; n = next) {
        struct frame_line *line = ST_CONTAINER(n, struct frame_line, node);
        next = n->next;
        if (line->deadline && now > line->deadline && (line->rank < 0 || line->n_in))
            line_refuse(f, line);
        else if (line->deadline && now > line->deadline && line->dialled && !line->heard)
            line_lost(f, line);
        /* The end that dialled hangs up; should that get lost, this one does, later. */
        else if (line->rank >= 0 && now > line->used + (line->dialled ? KEEP_FOR : 5 * KEEP_FOR))
            line_hang_up(f, line);
    }
    if (f->paused && now > f->paused + PAUSE) {
        f->paused = 0;
        (void)epoll_ctl(f->events, EPOLL_CTL_MOD, f->listener, &on);
    }
    f->swept = now;
}

int st_frames_poll(struct st_frames *f)
{
    struct epoll_event e[16];
    int n = epoll_wait(f->events, e, 16, 0);
    uint64_t now;

    for (int i = 0; i < n; i++) {
        struct frame_line *line = e[i].data.ptr;
        if (!line)
            frames_accept(f);
        if (!line || line->fd < 0) /* hung up since: freed below */
            continue;
        if ((e[i].events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) && (line->connecting || line->n_out))
            line_writable(f, line);
        if (line->fd >= 0 && !line->connecting)
            line_readable(f, line);
    }
    now = st_now_ns();
    if (now > f->swept + SWEEP_EVERY)
        frames_sweep(f, now);
    lines_free(&f->dead);
    return n > 0 ? n : 0;
}

/* ---- sending ---- */

int st_frames_send(struct st_frames *f, int rank, const void *frame, const uint8_t *address, uint16_t port)
{
    struct frame_line *line = line_find(f, rank);

    if (!line && address) {
        int fd = st_socket_dial(address, port);
        if (fd < 0)
            return errno == EMFILE || errno == ENFILE ? STRATA_ERR_AGAIN : STRATA_ERR_UNREACHABLE;
        line = line_add(f, fd, rank, st_now_ns());
    }
    if (!line || !frame_line_queue(line, frame))
        return STRATA_ERR_AGAIN;
    line->used = st_now_ns();
    if (!line->connecting && !frame_line_write(line)) {
        line_hang_up(f, line);
        return STRATA_ERR_AGAIN;
    }
    line_listen(f, line, EPOLL_CTL_MOD);
    return STRATA_OK;
}

/* ---- life ---- */

struct st_frames *st_frames_open(const struct st_frames_owner *owner, bool loopback, uint16_t *port)
{
    struct epoll_event e = {.events = EPOLLIN, .data = {.ptr = NULL}};
    struct st_frames *f = calloc(1, sizeof *f);
    int error;

    if (!f)
        return NULL;
    f->owner = *owner;
    st_list_init(&f->lines);
    st_list_init(&f->dead);
    f->listener = st_socket_listen(loopback, port);
    f->events = f->listener >= 0 ? epoll_create1(EPOLL_CLOEXEC) : -1;
    if (f->events >= 0 && epoll_ctl(f->events, EPOLL_CTL_ADD, f->listener, &e) == 0)
        return f;
    error = errno;
    st_frames_close(f);
    errno = error;
    return NULL;
}

void st_frames_close(struct st_frames *f)
{
    struct st_node *n;

    if (!f)
        return;
    while ((n = st_list_first(&f->lines)) != NULL)
        line_hang_up(f, ST_CONTAINER(n, struct frame_line, node));
    lines_free(&f->dead);
    if (f->listener >= 0) {
        (void)shutdown(f->listener, SHUT_RDWR); /* or callers would wait at the one that a child has */
        (void)close(f->listener);
    }
    if (f->events >= 0)
        (void)close(f->events);
    free(f);
}

int st_frames_fd(const struct st_frames *f)
{
    return f->events;
}

size_t st_frames_bytes(const struct st_frames *f)
{
    return sizeof *f + (f->n_known + f->n_unknown) * frame_line_bytes(f->owner.size);
}

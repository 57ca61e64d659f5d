/* Channels of the connection manager and the events that wait in them. A channel belongs to the process that opened it:
 * in a child of fork its descriptor is an ordinary one that does nothing. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "cm.h"

#define DESCRIPTORS 65536
#define READY       UINT64_MAX /* what the epoll set calls the eventfd; all else are numbers of identifiers */

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;
/* By descriptor. Every write() and close() of the program asks, so none of it without a lock. */
static _Atomic(struct cm_channel *) channels[DESCRIPTORS];
static _Atomic(uint32_t) n_channels;

struct cm_channel *cm_channel_of(int fd)
{
    if (atomic_load_explicit(&n_channels, memory_order_relaxed) == 0 || fd < 0 || fd >= DESCRIPTORS)
        return NULL;
    struct cm_channel *c = atomic_load_explicit(&channels[fd], memory_order_acquire);
    return c && c->pid == getpid() ? c : NULL;
}

bool cm_has(int fd)
{
    return cm_channel_of(fd) != NULL;
}

/* The program's descriptor is its own to close. */
static void free_channel(struct cm_channel *c)
{
    close(c->ready);
    free(c);
}

static struct cm_channel *new_channel(int flags)
{
    struct cm_channel *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->pid = getpid();
    c->end = &c->first;
    c->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->fd = epoll_create1(flags & O_CLOEXEC ? EPOLL_CLOEXEC : 0);
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = READY};
    if (c->ready >= 0 && c->fd >= 0 && c->fd < DESCRIPTORS && !epoll_ctl(c->fd, EPOLL_CTL_ADD, c->ready, &e) &&
        (!(flags & O_NONBLOCK) || !fcntl(c->fd, F_SETFL, O_NONBLOCK)))
        return c;
    const int error = c->fd >= DESCRIPTORS ? EMFILE : errno;
    if (c->fd >= 0)
        close(c->fd);
    if (c->ready >= 0)
        close(c->ready);
    free(c);
    errno = error;
    return NULL;
}

int cm_open(int flags)
{
    struct hca_device *first;
    hca_devices(&first); /* addresses and limits are known */
    struct cm_channel *c = new_channel(flags);
    if (!c)
        return -1;
    atomic_fetch_add(&n_channels, 1);
    atomic_store_explicit(&channels[c->fd], c, memory_order_release);
    return c->fd;
}

void cm_close(int fd)
{
    pthread_mutex_lock(&cm_lock);
    struct cm_channel *c = cm_channel_of(fd);
    if (c) {
        atomic_store(&channels[fd], NULL);
        atomic_fetch_sub(&n_channels, 1);
        struct cm_id *id;
        while ((id = cm_id_next(c, CM_NONE)))
            cm_id_free(id);
        c->closed = true;
        if (!c->waiting)
            free_channel(c);
    }
    pthread_mutex_unlock(&cm_lock);
}

bool cm_watch(struct cm_id *id)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = id->number};
    if (!id->watched)
        id->watched = epoll_ctl(id->channel->fd, EPOLL_CTL_ADD, id->fd, &e) == 0;
    return id->watched;
}

void cm_unwatch(struct cm_id *id)
{
    /* Not left to close(): a child of fork may have the socket, too. */
    if (id->watched)
        (void)epoll_ctl(id->channel->fd, EPOLL_CTL_DEL, id->fd, NULL);
    id->watched = false;
}

/* ---- events ---- */

static void append(struct cm_channel *c, struct cm_event *e)
{
    e->next = NULL;
    *c->end = e;
    c->end = &e->next;
    (void)eventfd_write(c->ready, 1);
}

struct cm_event *cm_say(struct cm_id *id, enum cm_event_code what, int status)
{
    struct cm_event *e = id->uid ? calloc(1, sizeof *e) : NULL;
    if (!e)
        return NULL;
    e->id = id->number;
    e->say.uid = id->uid;
    e->say.id = id->number;
    e->say.event = what;
    e->say.status = (uint32_t)status;
    append(id->channel, e);
    return e;
}

static void settle(struct cm_channel *c)
{
    eventfd_t all;
    if (!c->first)
        (void)eventfd_read(c->ready, &all);
}

/* An identifier's own, and the request that it is for a listener. */
static bool is_of(const struct cm_event *e, const struct cm_id *id)
{
    return e->id == id->number || e->say.id == id->number;
}

static struct cm_event *take_out(struct cm_channel *c, struct cm_event **at)
{
    struct cm_event *e = *at;
    *at = e->next;
    if (c->end == &e->next)
        c->end = at;
    return e;
}

void cm_events_drop(struct cm_channel *c, const struct cm_id *id)
{
    for (struct cm_event **at = &c->first; *at;) {
        if (is_of(*at, id))
            free(take_out(c, at));
        else
            at = &(*at)->next;
    }
    settle(c);
}

void cm_events_move(struct cm_channel *from, struct cm_channel *to, const struct cm_id *id)
{
    for (struct cm_event **at = &from->first; *at;) {
        if (is_of(*at, id))
            append(to, take_out(from, at));
        else
            at = &(*at)->next;
    }
    settle(from);
}

static void hear_all(struct cm_channel *c)
{
    struct epoll_event e[16];
    const int n = epoll_wait(c->fd, e, sizeof e / sizeof e[0], 0);
    for (int i = 0; i < n; i++) {
        struct cm_id *id = e[i].data.u64 == READY ? NULL : cm_id_at((uint32_t)e[i].data.u64);
        /* Of another channel: one before it has freed this number, and it was given out again. */
        if (id && id->channel == c && id->fd >= 0)
            cm_hear(id);
    }
}

static void fetch(struct cm_channel *c, struct rdma_ucm_event_resp *out)
{
    struct cm_event *e = take_out(c, &c->first);
    struct cm_id *id = cm_id_at(e->id);
    settle(c);
    *out = e->say;
    if (id)
        id->reported++;
    if (e->say.event == CM_EVENT_CONNECT_REQUEST && (id = cm_id_at(e->say.id)))
        id->listener = CM_NONE; /* the program has it now */
    free(e);
}

/* Waits without the lock; an errno when it ends otherwise than by something to hear. */
static int wait_in(struct cm_channel *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    const int flags = fcntl(c->fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK))
        return EAGAIN;
    c->waiting++;
    pthread_mutex_unlock(&cm_lock);
    int error = poll(&p, 1, -1) < 0 ? errno : 0;
    pthread_mutex_lock(&cm_lock);
    c->waiting--;
    if (!c->closed)
        return error;
    if (!c->waiting)
        free_channel(c);
    /* Who waits in a kernel's channel while another thread closes it waits on, and is not told: programs that end
     * (rping) rely on it. Only a signal gets it out of there. */
    pthread_mutex_unlock(&cm_lock);
    (void)pause();
    pthread_mutex_lock(&cm_lock);
    return EINTR;
}

int cm_event_get(struct cm_channel *c, struct rdma_ucm_event_resp *out)
{
    for (;;) {
        hear_all(c);
        if (c->first)
            break;
        const int error = wait_in(c);
        if (error)
            return error;
    }
    fetch(c, out);
    return 0;
}

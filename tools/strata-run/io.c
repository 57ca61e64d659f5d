/* Pipes from the ranks, and stdin to rank 0. */
#define _GNU_SOURCE
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report.h"
#include "sink.h"

enum { LINE_MAX_HELD = 1 << 16 }; /* a longer line is passed on in pieces */

int io_create(struct io *io, int n_ranks, bool tag)
{
    memset(io, 0, sizeof(*io));
    io->tag = tag;
    io->single = n_ranks == 1;
    io->terminal = isatty(0) ? 0 : -1;
    io->to_rank0 = -1;
    io->sinks[0].fd = 1;
    io->sinks[1].fd = 2;
    io->streams = calloc((size_t)n_ranks * 2, sizeof(*io->streams));
    if (!io->streams)
        return -1;
    io->n_streams = n_ranks * 2;
    for (int i = 0; i < io->n_streams; i++)
        io->streams[i] = (struct stream){.fd = -1, .rank = i / 2, .sink = &io->sinks[i % 2]};
    return 0;
}

void io_destroy(struct io *io)
{
    io_close_streams(io);
    for (int i = 0; i < io->n_streams; i++)
        free(io->streams[i].data);
    free(io->streams);
    free(io->sinks[0].data);
    free(io->sinks[1].data);
    if (io->to_rank0 >= 0)
        close(io->to_rank0);
}

/* ---- pipes ---- */

/* stdin: nothing for ranks above 0. Rank 0 gets our own when it is a file or a pipe, so that exactly what it reads is
 * consumed; a terminal belongs to our process group, so we read it and pass it on. */
static int open_input(struct io *io, int rank, struct rank_pipes *p)
{
    if (rank > 0) {
        p->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return p->in < 0 ? -1 : 0;
    }
    if (io->terminal < 0)
        return 0;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    p->in = fds[0];
    io->to_rank0 = fds[1];
    (void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
    return 0;
}

int io_open_rank(struct io *io, int rank, struct rank_pipes *p)
{
    int out[2], err[2];
    *p = (struct rank_pipes){-1, -1, -1};
    if (open_input(io, rank, p) != 0)
        goto failed;
    if (pipe2(out, O_CLOEXEC) != 0)
        goto failed;
    p->out = out[1];
    io->streams[2 * rank].fd = out[0];
    io->n_open++;
    if (pipe2(err, O_CLOEXEC) != 0)
        goto failed;
    p->err = err[1];
    io->streams[2 * rank + 1].fd = err[0];
    io->n_open++;
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(err[0], F_SETFL, O_NONBLOCK);
    return 0;
failed:
    report_error("cannot start rank %d: no pipe for its output: %s", rank, strerror(errno));
    io_close_rank_ends(p);
    return -1;
}

void io_close_rank_ends(struct rank_pipes *p)
{
    if (p->in >= 0)
        close(p->in);
    if (p->out >= 0)
        close(p->out);
    if (p->err >= 0)
        close(p->err);
}

/* ---- from ranks to sinks ---- */

static void put_tag(const struct stream *s)
{
    char tag[16];
    int n = snprintf(tag, sizeof(tag), "[%d] ", s->rank);
    sink_put(s->sink, tag, (size_t)n);
}

/* Passes on n bytes that are whole lines, or a piece of one when `whole` is false. */
static void pass(const struct io *io, struct stream *s, const char *data, size_t n)
{
    if (!io->tag) {
        sink_put(s->sink, data, n);
        return;
    }
    while (n > 0) {
        const char *end = memchr(data, '\n', n);
        size_t length = end ? (size_t)(end - data) + 1 : n;
        if (!s->mid_line)
            put_tag(s);
        sink_put(s->sink, data, length);
        s->mid_line = !end;
        data += length;
        n -= length;
    }
}

/* How much of the held data may go: up to the last end of line; all of it when nobody else's lines could mix with it,
 * or when it is too long to be held. */
static size_t ready(const struct io *io, const struct stream *s)
{
    if ((io->single && !io->tag) || s->n >= LINE_MAX_HELD)
        return s->n;
    const char *end = memrchr(s->data, '\n', s->n);
    return end ? (size_t)(end - s->data) + 1 : 0;
}

static void stream_close(struct io *io, struct stream *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    s->fd = -1;
    io->n_open--;
    pass(io, s, s->data, s->n);
    s->n = 0;
    if (io->tag && s->mid_line)
        sink_put(s->sink, "\n", 1);
    s->mid_line = false;
}

/* Returns the number of bytes read; 0 when there are none now, or none any more. */
static size_t stream_read(struct io *io, struct stream *s)
{
    if (!s->data) {
        s->room = LINE_MAX_HELD * 2;
        s->data = malloc(s->room);
        if (!s->data)
            return 0;
    }
    ssize_t got = read(s->fd, s->data + s->n, s->room - s->n);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0 || s->sink->broken) { /* broken: the rank shall meet the same end of its pipe */
        stream_close(io, s);
        return 0;
    }
    s->n += (size_t)got;
    size_t n = ready(io, s);
    pass(io, s, s->data, n);
    memmove(s->data, s->data + n, s->n - n);
    s->n -= n;
    return (size_t)got;
}

/* Takes what the pipe still holds: while the reader of our own output is slow, streams are not polled. At most as much
 * as fits into a pipe: a process that a rank left behind may write for ever. */
static void stream_drain(struct io *io, struct stream *s)
{
    int room = fcntl(s->fd, F_GETPIPE_SZ);
    size_t left = room > 0 ? (size_t)room : 0, got;

    while (left > 0 && s->fd >= 0 && (got = stream_read(io, s)) > 0)
        left -= got < left ? got : left;
}

bool io_streams_open(const struct io *io)
{
    return io->n_open > 0;
}

bool io_pending(const struct io *io)
{
    return !sink_empty(&io->sinks[0]) || !sink_empty(&io->sinks[1]);
}

void io_close_streams(struct io *io)
{
    for (int i = 0; i < io->n_streams; i++) {
        if (io->streams[i].fd >= 0)
            stream_drain(io, &io->streams[i]);
        stream_close(io, &io->streams[i]);
    }
}

/* ---- from the terminal to rank 0 ---- */

static void stop_input(struct io *io)
{
    close(io->to_rank0);
    io->to_rank0 = -1;
    io->terminal = -1;
}

static void pump(struct io *io, bool readable)
{
    if (readable && io->input_from == io->input_to) {
        ssize_t got = read(io->terminal, io->input, sizeof(io->input));
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            stop_input(io);
            return;
        }
        io->input_from = 0;
        io->input_to = (size_t)got;
    }
    if (io->input_from < io->input_to) {
        ssize_t put = write(io->to_rank0, io->input + io->input_from, io->input_to - io->input_from);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            stop_input(io);
        else if (put > 0)
            io->input_from += (size_t)put;
    }
}

/* ---- the main loop's view ---- */

int io_poll_room(const struct io *io)
{
    return io->n_streams + 3;
}

int io_poll_prepare(struct io *io, struct pollfd *fds)
{
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (!sink_empty(&io->sinks[i]))
            fds[n++] = (struct pollfd){io->sinks[i].fd, POLLOUT, 0};
    if (io->to_rank0 >= 0) {
        bool held = io->input_from < io->input_to;
        if (held)
            fds[n++] = (struct pollfd){io->to_rank0, POLLOUT, 0};
        else if (tcgetpgrp(io->terminal) == getpgrp()) /* in the background, reading would stop us */
            fds[n++] = (struct pollfd){io->terminal, POLLIN, 0};
    }
    for (int i = 0; i < io->n_streams; i++)
        if (io->streams[i].fd >= 0 && !sink_full(io->streams[i].sink))
            fds[n++] = (struct pollfd){io->streams[i].fd, POLLIN, 0};
    return n;
}

void io_poll_handle(struct io *io, const struct pollfd *fds, int n)
{
    int next = 0; /* fds are in the order of the streams */
    for (int k = 0; k < n; k++) {
        if (!fds[k].revents)
            continue;
        if (io->to_rank0 >= 0 && (fds[k].fd == io->to_rank0 || fds[k].fd == io->terminal)) {
            pump(io, fds[k].fd == io->terminal);
            continue;
        }
        for (; next < io->n_streams; next++)
            if (io->streams[next].fd == fds[k].fd) {
                stream_read(io, &io->streams[next]);
                break;
            }
        if (next == io->n_streams)
            next = 0;
    }
    for (int i = 0; i < 2; i++)
        sink_flush(&io->sinks[i]);
}

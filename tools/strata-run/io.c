/* Pipes and pseudo-terminals from the ranks, and stdin to rank 0. */
#define _GNU_SOURCE
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files.h"
#include "job.h"
#include "pty.h"
#include "report.h"
#include "sink.h"
#include "stream.h"

int io_create(struct io *io, const struct job *job)
{
    const struct run_options *o = job->options;
    memset(io, 0, sizeof(*io));
    io->job = job;
    io->copy = !o->output_folder || !o->output_nocopy;
    io->terminal = isatty(0) ? 0 : -1;
    io->to_rank0 = -1;
    io->sinks[0].fd = 1;
    io->sinks[1].fd = 2;
    if (o->output_folder && files_prepare(o->output_folder) != 0)
        return -1;
    io->streams = calloc((size_t)o->n * 2, sizeof(*io->streams));
    if (!io->streams) {
        report_error("out of memory");
        return -1;
    }
    io->n_streams = o->n * 2;
    for (int i = 0; i < io->n_streams; i++)
        io->streams[i] =
            (struct stream){.fd = -1, .file = -1, .rank = i / 2, .is_stderr = i % 2, .sink = &io->sinks[i % 2]};
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

/* A terminal makes the rank's C library write whole lines at once. Standard error is not held back in a pipe either. */
static int open_output(struct stream *s, bool terminal, int *rank_end)
{
    int fds[2];
    s->is_terminal = terminal && pty_open(&fds[0], &fds[1]) == 0;
    if (!s->is_terminal && pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    s->fd = fds[0];
    *rank_end = fds[1];
    return 0;
}

int io_open_rank(struct io *io, int rank, struct rank_pipes *p)
{
    const struct run_options *o = io->job->options;
    struct stream *out = &io->streams[2 * rank], *err = out + 1;
    int files[2];
    *p = (struct rank_pipes){-1, -1, -1};
    if (o->output_folder) {
        if (files_open(o->output_folder, rank, files) != 0)
            return -1;
        out->file = files[0];
        err->file = files[1];
    }
    if (open_input(io, rank, p) != 0)
        goto failed;
    if (open_output(out, !o->no_pty, &p->out) != 0)
        goto failed;
    io->n_open++;
    if (open_output(err, false, &p->err) != 0)
        goto failed;
    io->n_open++;
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

bool io_streams_open(const struct io *io)
{
    return io->n_open > 0;
}

bool io_failed(const struct io *io)
{
    return io->failed || io->sinks[0].failed || io->sinks[1].failed;
}

bool io_pending(const struct io *io)
{
    return !sink_empty(&io->sinks[0]) || !sink_empty(&io->sinks[1]);
}

void io_close_streams(struct io *io)
{
    for (int i = 0; i < io->n_streams; i++)
        stream_close(io, &io->streams[i]);
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

double io_tick(struct io *io)
{
    double now = run_now(), next = 0;
    for (int i = 0; i < io->n_streams; i++) {
        double due = stream_due(io, &io->streams[i]);
        if (due > 0 && due <= now)
            stream_flush(io, &io->streams[i]);
        else if (due > 0 && (next <= 0 || due < next))
            next = due;
    }
    for (int i = 0; i < 2; i++)
        sink_flush(&io->sinks[i]);
    return next;
}

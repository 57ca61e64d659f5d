/* Lines of different ranks do not mix: a part of a line is held until its end comes, or until the rank has been silent
 * for so long that it seems to be a prompt or a progress bar. */
#define _GNU_SOURCE
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files.h"
#include "job.h"
#include "sink.h"

enum { FIRST_ROOM = 1 << 17 };     /* bytes; grows for a longer line */
enum { LINE_MAX_HELD = 1 << 24 };  /* a longer line is passed on in pieces */
enum { TERMINAL_HOLDS = 1 << 17 }; /* more than a pseudo-terminal can hold */

/* Silence of all ranks, and of one rank while others write. On a crowded machine a rank may stand still between two
 * parts of a line, and the lines of others would come between them. */
static const double silence_s = 0.2, own_silence_s = 1;
/* A prompt is short: what is longer is taken for part of a line that its rank has not got round to end. */
enum { PROMPT_MAX = 4096 };
static const double long_silence_s = 10;

static void put_tag(const struct stream *s)
{
    char tag[16];
    int n = snprintf(tag, sizeof(tag), "[%d] ", s->rank);
    sink_put(s->sink, tag, (size_t)n);
}

/* Each line with its tag. Part of another stream's line may be there: then the line ends here. */
static void pass_tagged(struct stream *s, const char *data, size_t n)
{
    struct stream *other = s->sink->unfinished;
    if (n > 0 && other && other != s) {
        sink_put(s->sink, "\n", 1);
        s->sink->unfinished = NULL;
    }
    while (n > 0) {
        const char *end = memchr(data, '\n', n);
        size_t length = end ? (size_t)(end - data) + 1 : n;
        if (!s->sink->unfinished)
            put_tag(s);
        sink_put(s->sink, data, length);
        s->sink->unfinished = end ? NULL : s;
        data += length;
        n -= length;
    }
}

/* Passes on the first n bytes of what is held. */
static void pass(const struct io *io, struct stream *s, size_t n)
{
    if (!io->copy)
        ;
    else if (io->job->options->tag_output)
        pass_tagged(s, s->data, n);
    else
        sink_put(s->sink, s->data, n);
    if (n < s->n)
        memmove(s->data, s->data + n, s->n - n);
    s->n -= n;
}

/* How much of the held data may go: up to the last end of line, which is not before `seen`; all of it when no other
 * rank's lines could mix with it, or when it is too long to be held. */
static size_t ready(const struct io *io, const struct stream *s, size_t seen)
{
    const struct run_options *o = io->job->options;
    if ((o->n == 1 && !o->tag_output) || s->n >= LINE_MAX_HELD)
        return s->n;
    const char *end = memrchr(s->data + seen, '\n', s->n - seen);
    return end ? (size_t)(end - s->data) + 1 : 0;
}

void stream_flush(struct io *io, struct stream *s)
{
    pass(io, s, s->n);
}

double stream_due(const struct io *io, const struct stream *s)
{
    if (s->n == 0 || sink_full(s->sink))
        return 0;
    if (s->n > PROMPT_MAX)
        return s->last_read + long_silence_s;
    double all = io->last_read + silence_s, own = s->last_read + own_silence_s;
    return all < own ? all : own;
}

/* The reader of our output has gone: the rank meets what a writer to a pipe without a reader meets, also when it writes
 * to a terminal, which knows no SIGPIPE. */
static void refuse(const struct io *io, const struct stream *s)
{
    const struct rank *r = &io->job->ranks[s->rank];
    if (s->is_terminal && r->pid && !r->group_gone)
        (void)kill(-r->pid, SIGPIPE);
}

static void end(struct io *io, struct stream *s)
{
    close(s->fd);
    s->fd = -1;
    io->n_open--;
    if (s->n > 0)
        stream_flush(io, s);
    if (s->sink->unfinished == s) {
        sink_put(s->sink, "\n", 1);
        s->sink->unfinished = NULL;
    }
    if (s->file >= 0)
        close(s->file);
    s->file = -1;
}

/* Makes room to read. Without memory the line is passed on in pieces. */
static bool make_room(struct io *io, struct stream *s)
{
    if (s->data && s->n <= s->room / 2)
        return true;
    size_t room = s->data ? 2 * s->room : FIRST_ROOM;
    char *data = realloc(s->data, room);
    if (data) {
        s->data = data;
        s->room = room;
    } else if (s->data) {
        stream_flush(io, s);
    }
    return s->data != NULL;
}

size_t stream_read(struct io *io, struct stream *s)
{
    if (!make_room(io, s))
        return 0;
    ssize_t got = read(s->fd, s->data + s->n, s->room - s->n);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0) { /* a terminal that nobody has open any more answers EIO */
        end(io, s);
        return 0;
    }
    if (s->sink->broken) {
        refuse(io, s);
        end(io, s);
        return 0;
    }
    if (s->file >= 0 &&
        !files_write(io->job->options->output_folder, s->rank, s->is_stderr, s->file, s->data + s->n, (size_t)got)) {
        io->failed = true;
        close(s->file);
        s->file = -1;
    }
    size_t seen = s->n;
    s->n += (size_t)got;
    s->last_read = io->last_read = run_now();
    pass(io, s, ready(io, s, seen));
    return (size_t)got;
}

/* While the reader of our own output is slow, streams are not polled. Takes at most as much as fits into the pipe: a
 * process that a rank left behind may write for ever. */
static void drain(struct io *io, struct stream *s)
{
    int room = s->is_terminal ? TERMINAL_HOLDS : fcntl(s->fd, F_GETPIPE_SZ);
    size_t left = room > 0 ? (size_t)room : 0, got;

    while (left > 0 && s->fd >= 0 && (got = stream_read(io, s)) > 0)
        left -= got < left ? got : left;
}

void stream_close(struct io *io, struct stream *s)
{
    if (s->fd >= 0)
        drain(io, s);
    if (s->fd >= 0)
        end(io, s);
}

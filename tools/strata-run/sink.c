/* Our stdout and stderr belong to others too (a terminal, a pipe shared with a shell), so that they are not made
 * non-blocking. Instead: poll, then write at most PIPE_BUF, which a pipe that polls writable takes without blocking. */
#include "sink.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report.h"

enum { FULL = 1 << 20 };

void sink_put(struct sink *s, const char *data, size_t n)
{
    if (s->broken || n == 0)
        return;
    if (s->from == s->to)
        s->from = s->to = 0;
    if (s->to + n > s->room && s->from > 0) {
        memmove(s->data, s->data + s->from, s->to - s->from);
        s->to -= s->from;
        s->from = 0;
    }
    if (s->to + n > s->room) {
        size_t room = (s->to + n) * 2;
        char *more = realloc(s->data, room);
        if (!more) {
            report_now("out of memory: %zu bytes of output are lost", n);
            return;
        }
        s->data = more;
        s->room = room;
    }
    memcpy(s->data + s->to, data, n);
    s->to += n;
}

void sink_flush(struct sink *s)
{
    while (s->from < s->to && !s->broken) {
        struct pollfd p = {s->fd, POLLOUT, 0};
        if (poll(&p, 1, 0) <= 0)
            return;
        size_t n = s->to - s->from < PIPE_BUF ? s->to - s->from : PIPE_BUF;
        ssize_t put = write(s->fd, s->data + s->from, n);
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (put < 0) {
            s->failed = errno != EPIPE;
            s->broken = true; /* before that is said, which may go by this one */
            s->from = s->to = 0;
            if (s->failed)
                report_error("cannot write standard %s: %s; ending the job", s->fd == 1 ? "output" : "error",
                             strerror(errno));
            return;
        }
        s->from += (size_t)put;
    }
}

bool sink_full(const struct sink *s)
{
    return s->to - s->from >= FULL;
}

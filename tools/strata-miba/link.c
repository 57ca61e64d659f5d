/* Lines of text between both sides. */
#include "config.h"
#include "link.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "silence.h"
#include "stats.h"

void link_start(struct link *l, int fd, int timeout_s)
{
    l->fd = fd;
    l->timeout_s = timeout_s;
    l->lost = false;
    l->held = 0;
}

void link_end(struct link *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

static enum miba_status gone(struct link *l, struct miba_why *why, const char *how)
{
    l->lost = true;
    return miba_fail(why, MIBA_LOST, "the peer is lost: %s", how);
}

enum miba_status link_say(struct link *l, struct miba_why *why, const char *format, ...)
{
    char line[LINE_MOST];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (n < 0 || n >= (int)sizeof line - 1)
        return miba_fail(why, MIBA_FAILED, "a line to the peer is longer than %u bytes", LINE_MOST);
    line[n++] = '\n';
    for (int sent = 0; sent < n;) {
        const ssize_t k = send(l->fd, line + sent, (size_t)(n - sent), MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return gone(l, why, errno == EPIPE || errno == ECONNRESET ? "it has ended" : strerror(errno));
        sent += (int)k;
    }
    return MIBA_OK;
}

/* One line out of the buffer. */
static bool take_line(struct link *l, char *line)
{
    char *end = memchr(l->buffer, '\n', l->held);

    if (!end)
        return false;
    const size_t n = (size_t)(end - l->buffer);
    memcpy(line, l->buffer, n);
    line[n] = 0;
    l->held -= n + 1;
    memmove(l->buffer, end + 1, l->held);
    return true;
}

enum miba_status link_hear(struct link *l, char *line, bool patient, struct miba_why *why)
{
    const uint64_t timeout_ns = (uint64_t)l->timeout_s * 1000000000u;
    struct silence quiet = {.looked = miba_now()};

    while (!take_line(l, line)) {
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        char text[64];

        if (l->held == sizeof l->buffer)
            return gone(l, why, "it does not speak the protocol of strata-miba");
        if (!patient && quiet.ns >= timeout_ns) {
            snprintf(text, sizeof text, "it has not answered for %d s", l->timeout_s);
            return gone(l, why, text);
        }
        if (poll(&p, 1, (int)(timeout_ns / SILENCE_LOOKS / 1000000u)) <= 0) {
            silence_goes_on(&quiet, miba_now(), timeout_ns);
            continue;
        }
        const ssize_t k = recv(l->fd, l->buffer + l->held, sizeof l->buffer - l->held, 0);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return gone(l, why, k == 0 || errno == ECONNRESET ? "it has ended" : strerror(errno));
        l->held += (size_t)k;
    }
    return MIBA_OK;
}

bool link_stirs(struct link *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN | POLLRDHUP};

    return l->held > 0 || poll(&p, 1, 0) > 0;
}

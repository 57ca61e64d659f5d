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
    l->patience = LINK_PATIENCE;
    l->lost = false;
    l->heard = 0;
    l->watched = 0;
    l->beating = false;
    l->held = 0;
    l->beats = false;
    pthread_mutex_init(&l->sending, NULL);
}

void link_end(struct link *l)
{
    link_beats_stop(l);
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
    int sent = 0, error = 0;
    pthread_mutex_lock(&l->sending);
    while (sent < n && !error) {
        const ssize_t k = send(l->fd, line + sent, (size_t)(n - sent), MSG_NOSIGNAL);
        if (k >= 0)
            sent += (int)k;
        else if (errno != EINTR)
            error = errno;
    }
    pthread_mutex_unlock(&l->sending);
    if (error)
        return gone(l, why, error == EPIPE || error == ECONNRESET ? "it has ended" : strerror(error));
    return MIBA_OK;
}

/* Heartbeats at the start of the buffer. */
static void drop_beats(struct link *l)
{
    size_t n = 0;

    while (n < l->held && l->buffer[n] == '\n')
        n++;
    l->beating |= n > 0;
    l->held -= n;
    memmove(l->buffer, l->buffer + n, l->held);
}

/* Bytes received into the buffer, or what recv has returned. */
static ssize_t receive(struct link *l, int flags)
{
    const ssize_t k = recv(l->fd, l->buffer + l->held, sizeof l->buffer - l->held, flags);

    if (k > 0) {
        l->held += (size_t)k;
        l->heard = miba_now();
    }
    return k;
}

/* One line out of the buffer. */
static bool take_line(struct link *l, char *line)
{
    drop_beats(l);
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

/* The peer is lost when it gives no sign of life for a time-out, or no answer for many. */
static enum miba_status too_late(struct link *l, const struct silence *life, const struct silence *answer,
                                 struct miba_why *why)
{
    const uint64_t timeout_ns = (uint64_t)l->timeout_s * 1000000000u;
    char text[80];

    if (life->ns >= timeout_ns)
        snprintf(text, sizeof text, "it gave no sign of life for %d s", l->timeout_s);
    else if (answer->ns >= l->patience * timeout_ns)
        snprintf(text, sizeof text, "it lives, but has not answered for %u s", l->patience * (unsigned)l->timeout_s);
    else
        return MIBA_OK;
    return gone(l, why, text);
}

enum miba_status link_hear(struct link *l, char *line, bool patient, struct miba_why *why)
{
    const uint64_t timeout_ns = (uint64_t)l->timeout_s * 1000000000u;
    struct silence life = {.looked = miba_now()}, answer = life;

    while (!take_line(l, line)) {
        struct pollfd p = {.fd = l->fd, .events = POLLIN};

        if (l->held == sizeof l->buffer)
            return gone(l, why, "it does not speak the protocol of strata-miba");
        const enum miba_status late = patient ? MIBA_OK : too_late(l, &life, &answer, why);
        if (late)
            return late;
        const bool some = poll(&p, 1, (int)(timeout_ns / SILENCE_LOOKS / 1000000u)) > 0;
        silence_goes_on(&answer, miba_now(), timeout_ns);
        if (!some) {
            silence_goes_on(&life, miba_now(), timeout_ns);
            continue;
        }
        const ssize_t k = receive(l, 0);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return gone(l, why, k == 0 || errno == ECONNRESET ? "it has ended" : strerror(errno));
        life = (struct silence){.looked = miba_now()};
    }
    return MIBA_OK;
}

bool link_stirs(struct link *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN | POLLRDHUP};

    drop_beats(l);
    while (l->held == 0 && poll(&p, 1, 0) > 0) {
        if (p.revents & ~POLLIN)
            return true;
        const ssize_t k = receive(l, MSG_DONTWAIT);
        if (k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN))
            return true;
        drop_beats(l);
    }
    return l->held > 0;
}

enum miba_status link_watch(struct link *l, struct silence *quiet, struct miba_why *why)
{
    const uint64_t timeout_ns = (uint64_t)l->timeout_s * 1000000000u;
    const struct silence no_answer = {0};
    char line[LINE_MOST];

    if (link_stirs(l)) {
        const enum miba_status status = link_hear(l, line, false, why);
        return status ? status : miba_fail(why, MIBA_BROKEN, "the other side says \"%.80s\", unasked", line);
    }
    if (l->heard != l->watched || !l->beating)
        *quiet = (struct silence){.looked = miba_now()};
    else
        silence_goes_on(quiet, miba_now(), timeout_ns);
    l->watched = l->heard;
    return too_late(l, quiet, &no_answer, why);
}

bool link_lives(const struct link *l)
{
    return l->heard && miba_now() - l->heard < (uint64_t)l->timeout_s * 1000000000u;
}

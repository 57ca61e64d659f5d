/* Callers at a process that listens: their handshakes go on side by side, each as far as its bytes have come, so that
 * one that is silent holds up nobody. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/link.h"

void link_caller_free(struct link_caller *c)
{
    link_wire_close(&c->wire);
    free(c);
}

/* Ends a handshake that has failed, whose caller is at `at` in the list. */
static void caller_refuse(strata_channel_link_t *l, struct link_caller **at, const char *why)
{
    struct link_caller *c = *at;

    fprintf(stderr, "strata: %s: a process that connected was refused: %s\n", l->address, why);
    *at = c->next;
    if (c->rank)
        link_member_drop(l, c->rank);
    link_caller_free(c);
}

/* One that knows the secret gets a number, and what it needs to make its context, for which it has all the time. */
static int caller_welcome(strata_channel_link_t *l, struct link_caller *c)
{
    struct link_welcome welcome = {.rank = 0};
    int rank, rc = link_member_new(l, &rank);

    if (rc != STRATA_OK)
        return rc;
    c->rank = rank;
    c->wire.until = -1;
    welcome.rank = (uint32_t)rank;
    memcpy(welcome.job, l->job, sizeof(welcome.job));
    rc = link_tell(&c->wire, &welcome, sizeof(welcome));
    return rc == STRATA_OK ? link_member_tell(l, &c->wire) : rc;
}

/* As far as it goes: STRATA_OK: it is ready and told. */
static int caller_go(strata_channel_link_t *l, struct link_caller *c)
{
    int rc = c->rank ? STRATA_OK : link_prove(&c->wire, l->secret);

    if (rc == STRATA_OK && !c->rank)
        rc = caller_welcome(l, c);
    if (rc == STRATA_OK && !c->ready) {
        rc = link_member_hear(l, &c->wire, c->rank);
        if (rc == STRATA_OK)
            rc = link_tell(&c->wire, link_ready, sizeof(link_ready));
        c->ready = rc == STRATA_OK;
    }
    return rc == STRATA_OK ? link_push(&c->wire) : rc;
}

/* The oldest that has not proven the secret, if there are `least` of them: where it is in the list, or NULL. */
static struct link_caller **callers_oldest(strata_channel_link_t *l, int least)
{
    struct link_caller **oldest = NULL;

    for (struct link_caller **at = &l->callers; *at; at = &(*at)->next) {
        if ((*at)->rank)
            continue;
        oldest = oldest ? oldest : at;
        least--;
    }
    return least <= 0 ? oldest : NULL;
}

/* Puts one that has connected at the end of the list. */
static int callers_add(strata_channel_link_t *l, int fd)
{
    struct link_caller **at = callers_oldest(l, LINK_CALLERS), *c = calloc(1, sizeof(*c));

    if (!c) {
        (void)close(fd);
        return link_fail(l, STRATA_ERR_NOMEM, "%s: no memory for a process that connects", l->address);
    }
    if (at)
        caller_refuse(l, at, "it was silent while too many others came");
    c->wire = (struct link_wire){.fd = fd, .until = st_now_ms() + LINK_SILENCE_MS};
    for (at = &l->callers; *at; at = &(*at)->next)
        ;
    *at = c;
    return STRATA_OK;
}

/* Takes those that have connected. One that is silent gives its descriptor to the next where they are used up. */
static int callers_take(strata_channel_link_t *l)
{
    int rc = STRATA_OK;

    for (int i = 0; i < LINK_CALLERS && rc == STRATA_OK; i++) {
        int fd = accept4(l->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            rc = callers_add(l, fd);
            continue;
        }
        if (errno == EAGAIN)
            return STRATA_OK;
        int error = errno;
        struct link_caller **at = error == EMFILE || error == ENFILE ? callers_oldest(l, 1) : NULL;
        if (at)
            caller_refuse(l, at, "it was silent while others needed its descriptor");
        else if (error != ECONNABORTED && error != EINTR)
            return link_fail(l, STRATA_ERR_SYSTEM, "%s: accept: %s", l->address, strerror(error));
    }
    return rc;
}

int link_callers_go(strata_channel_link_t *l, struct link_caller **out)
{
    int taken = callers_take(l);

    for (struct link_caller **at = &l->callers; *at;) {
        struct link_caller *c = *at;
        int rc = caller_go(l, c);
        if (rc == STRATA_OK) {
            *at = c->next;
            *out = c;
            return STRATA_OK;
        }
        if (rc == STRATA_ERR_AGAIN && c->wire.until >= 0 && st_now_ms() >= c->wire.until)
            caller_refuse(l, at, "it was silent");
        else if (rc != STRATA_ERR_AGAIN)
            caller_refuse(l, at, "it does not know the secret, or went away");
        else
            at = &c->next;
    }
    return taken == STRATA_OK ? STRATA_ERR_AGAIN : taken;
}

static nfds_t callers_descriptors(const strata_channel_link_t *l)
{
    nfds_t n = 1;

    for (const struct link_caller *c = l->callers; c; c = c->next)
        n++;
    for (int i = 0; i < l->n_members; i++)
        n += l->members[i].fd >= 0;
    return n;
}

int link_callers_wait(const strata_channel_link_t *l, int64_t until, int64_t next)
{
    struct pollfd *all = calloc(callers_descriptors(l), sizeof(*all));
    nfds_t n = 1;

    if (!all)
        return STRATA_ERR_NOMEM;
    int64_t first = until < 0 || (next >= 0 && next < until) ? next : until;
    all[0] = (struct pollfd){.fd = l->listener, .events = POLLIN};
    for (const struct link_caller *c = l->callers; c; c = c->next) {
        short events = (short)(POLLIN | (c->wire.out_at < c->wire.out_size ? POLLOUT : 0));
        all[n++] = (struct pollfd){.fd = c->wire.fd, .events = events};
        if (c->wire.until >= 0 && (first < 0 || c->wire.until < first))
            first = c->wire.until;
    }
    for (int i = 0; i < l->n_members; i++)
        if (l->members[i].fd >= 0)
            all[n++] = (struct pollfd){.fd = l->members[i].fd, .events = POLLIN};
    int64_t left = first < 0 ? -1 : first - st_now_ms();
    int some = poll(all, n, first < 0 ? -1 : left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);
    free(all);
    return some <= 0 && until >= 0 && st_now_ms() >= until ? STRATA_ERR_TIMEOUT : STRATA_OK;
}

void link_callers_free(strata_channel_link_t *l)
{
    while (l->callers) {
        struct link_caller *c = l->callers;
        l->callers = c->next;
        link_caller_free(c);
    }
}

/* Links: processes that find each other by an address and then have a context together. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "channel/link.h"
#include "framework/base/context.h"

static strata_channel_link_t *link_make(const strata_config_t *config)
{
    strata_channel_link_t *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->listener = -1;
    if (config) {
        l->error = config->error_text;
        l->error_size = config->error_text_size;
    }
    (void)pthread_mutex_init(&l->lock, NULL);
    return l;
}

/* The caller's text may be gone from now on. */
static void link_made(strata_channel_link_t *l)
{
    l->error = NULL;
}

static void link_free(strata_channel_link_t *l)
{
    if (l->listener >= 0)
        (void)close(l->listener);
    if (l->path)
        (void)unlink(l->address);
    link_callers_free(l);
    link_members_free(l);
    (void)pthread_mutex_destroy(&l->lock);
    explicit_bzero(l->secret, sizeof(l->secret)); /* a memset before free may be left out */
    free(l);
}

/* The context, with `rank` in it. What is published goes into the table. */
static int link_context(strata_channel_link_t *l, int rank, const strata_config_t *config)
{
    strata_config_t mine = STRATA_CONFIG_INIT;
    int rc = link_member_add(l, rank);

    if (rc != STRATA_OK)
        return rc;
    if (config)
        mine = *config;
    link_host(l, rank);
    mine.host = &l->host;
    rc = strata_init(&mine, &l->context);
    if (rc == STRATA_OK)
        l->members[rank].known = true;
    return rc;
}

int strata_channel_listen(const char *address, const strata_config_t *config, strata_channel_link_t **out)
{
    uint64_t number;

    if (!address || !out || (config && config->host))
        return STRATA_ERR_ARG;
    strata_channel_link_t *l = link_make(config);
    if (!l)
        return STRATA_ERR_NOMEM;
    int rc = link_secret(l);
    if (rc == STRATA_OK && getrandom(&number, sizeof(number), 0) != sizeof(number))
        rc = STRATA_ERR_SYSTEM;
    if (rc == STRATA_OK) {
        (void)snprintf(l->job, sizeof(l->job), "channel-%016llx", (unsigned long long)number);
        rc = link_listen(l, address);
    }
    if (rc == STRATA_OK)
        rc = link_context(l, 0, config);
    if (rc != STRATA_OK) {
        link_free(l);
        return rc;
    }
    link_made(l);
    *out = l;
    return STRATA_OK;
}

/* Processes whose connection has ended without a good-bye are gone, which a transport may notice later. */
static void link_look(strata_channel_link_t *l)
{
    char byte;

    for (int i = 1; i < l->n_members; i++) {
        struct link_member *m = &l->members[i];
        ssize_t n = m->fd < 0 ? 0 : recv(m->fd, &byte, 1, MSG_DONTWAIT);
        if (m->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
            continue;
        (void)close(m->fd);
        m->fd = -1;
        link_member_leave(l, i);
        if (n <= 0)
            (void)strata_host_peer_failed(l->context, i, "it has closed its link, or died");
    }
}

/* Messages to those who are connected leave, and theirs arrive. Returns the time of the clock for the next round, ms:
 * what a transport has meanwhile does not end the sleep. Negative: nobody is connected. */
static int64_t link_progress(strata_channel_link_t *l)
{
    bool any = false;

    for (int i = 1; i < l->n_members && !any; i++)
        any = l->members[i].fd >= 0;
    if (!any || !l->context)
        return -1;
    int64_t pause = strata_progress(l->context) > 0 ? 0 : l->context->base->sleep_max_us / 1000 + 1;
    return st_now_ms() + pause;
}

int strata_channel_accept(strata_channel_link_t *l, int64_t limit_ms, int *number)
{
    struct link_caller *c;
    int rc;

    if (!l || !number || l->listener < 0)
        return STRATA_ERR_ARG;
    int64_t until = limit_ms < 0 ? -1 : st_now_ms() + limit_ms;
    for (;;) {
        link_look(l);
        rc = link_callers_go(l, &c);
        if (rc == STRATA_ERR_AGAIN && limit_ms != 0)
            rc = link_callers_wait(l, until, link_progress(l));
        else
            break;
        if (rc != STRATA_OK)
            return rc;
    }
    if (rc != STRATA_OK)
        return rc;
    *number = c->rank;
    l->members[c->rank].fd = c->wire.fd;
    c->wire.fd = -1; /* the member's from here on */
    link_caller_free(c);
    return STRATA_OK;
}

/* The caller's side, over a connection that stands. */
static int link_join(strata_channel_link_t *l, struct link_wire *w, const char *address, const strata_config_t *config)
{
    struct link_welcome welcome;
    const char *data;
    size_t size;
    int rc = link_prove(w, l->secret);

    if (rc == STRATA_OK)
        rc = link_hear(w, sizeof(welcome), &data, &size);
    if (rc == STRATA_ERR_PEER)
        return link_fail(l, rc, "%s: its process has another secret, is no Strata, or went away", address);
    if (rc != STRATA_OK)
        return rc;
    memcpy(&welcome, data, sizeof(welcome));
    if (welcome.rank < 1 || welcome.rank >= INT32_MAX / 2 || !memchr(welcome.job, 0, sizeof(welcome.job)))
        return link_fail(l, STRATA_ERR_PEER, "%s: it said what cannot be true", address);
    memcpy(l->job, welcome.job, sizeof(l->job));
    rc = link_member_add(l, (int)welcome.rank);
    if (rc == STRATA_OK)
        rc = link_member_hear(l, w, 0);
    if (rc != STRATA_OK)
        return link_fail(l, rc, "%s: what its process has published did not come: %s", address, strata_strerror(rc));
    rc = link_context(l, (int)welcome.rank, config);
    if (rc != STRATA_OK)
        return rc;
    rc = link_member_tell(l, w);
    if (rc == STRATA_OK)
        rc = link_hear(w, sizeof(link_ready), &data, &size);
    if (rc != STRATA_OK)
        return link_fail(l, rc, "%s: its process went away", address);
    l->members[0].fd = w->fd;
    w->fd = -1; /* the member's from here on */
    return STRATA_OK;
}

static int link_call(strata_channel_link_t *l, const char *address, int64_t until, const strata_config_t *config)
{
    const struct timespec pause = {0, 20000000};
    struct link_wire w = {.until = until, .caller = true, .blocks = true, .fd = -1};
    int rc;

    while ((rc = link_dial(l, address, until, &w.fd)) == STRATA_ERR_UNREACHABLE && (until < 0 || st_now_ms() < until))
        (void)nanosleep(&pause, NULL);
    if (rc == STRATA_ERR_UNREACHABLE)
        return link_fail(l, rc, "nobody listens at %s: %s", address, strerror(errno));
    if (rc != STRATA_OK)
        return rc;
    rc = link_join(l, &w, address, config);
    link_wire_close(&w);
    if (rc == STRATA_ERR_TIMEOUT)
        return link_fail(l, rc, "%s: its process did not accept in time", address);
    return rc;
}

int strata_channel_connect(const char *address, int64_t limit_ms, const strata_config_t *config,
                           strata_channel_link_t **out)
{
    if (!address || !out || (config && config->host))
        return STRATA_ERR_ARG;
    strata_channel_link_t *l = link_make(config);
    if (!l)
        return STRATA_ERR_NOMEM;
    (void)snprintf(l->address, sizeof(l->address), "%s", address);
    int rc = link_secret(l);
    if (rc == STRATA_OK)
        rc = link_call(l, address, limit_ms < 0 ? -1 : st_now_ms() + limit_ms, config);
    if (rc != STRATA_OK) {
        if (l->context)
            (void)strata_finalize(l->context);
        link_free(l);
        return rc;
    }
    link_made(l);
    *out = l;
    return STRATA_OK;
}

strata_t *strata_channel_link_context(const strata_channel_link_t *l)
{
    return l ? l->context : NULL;
}

const char *strata_channel_link_address(const strata_channel_link_t *l)
{
    return l ? l->address : NULL;
}

int strata_channel_link_close(strata_channel_link_t *l)
{
    if (!l)
        return STRATA_ERR_ARG;
    int rc = strata_finalize(l->context);
    for (int i = 0; i < l->n_members; i++)
        if (l->members[i].fd >= 0)
            (void)send(l->members[i].fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* good-bye */
    link_free(l);
    return rc;
}

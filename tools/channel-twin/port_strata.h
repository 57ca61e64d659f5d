/* Strata's channels (way `channel`) and its messages (way `send`). */
#ifndef TWIN_PORT_H
#define TWIN_PORT_H

#include <stdbool.h>
#include <strata/channel.h>

#include "support.h"

struct port {
    int rank, n;
    bool channels;
    strata_t *s;
    strata_comm_t *world;
    strata_channel_sender_t **out; /* by rank */
    strata_channel_receiver_t **in;
    strata_channel_set_t *set; /* rank 0's, of more than one */
};

static inline void port_must(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, strata_strerror(rc));
    exit(1);
}

static inline void port_open(struct port *p, const char *way, int n)
{
    (void)n;
    port_must(strata_init(NULL, &p->s), "strata_init");
    p->world = strata_world(p->s);
    p->rank = strata_rank(p->s);
    p->n = strata_size(p->s);
    p->channels = strcmp(way, "channel") == 0;
    p->out = calloc((size_t)p->n, sizeof(*p->out));
    p->in = calloc((size_t)p->n, sizeof(*p->in));
    if (!p->out || !p->in)
        port_must(STRATA_ERR_NOMEM, "channels");
    for (int i = p->rank ? 0 : 1; p->channels && i < (p->rank ? 1 : p->n); i++) {
        port_must(strata_channel_open_recv(p->s, i, "twin", 0, &p->in[i]), "strata_channel_open_recv");
        port_must(strata_channel_open_send(p->s, i, "twin", &p->out[i]), "strata_channel_open_send");
    }
    if (p->rank != 0 || p->n == 2 || !p->channels)
        return;
    port_must(strata_channel_set_create(p->s, &p->set), "strata_channel_set_create");
    for (int i = 1; i < p->n; i++)
        port_must(strata_channel_set_add(p->set, p->in[i]), "strata_channel_set_add");
}

static inline void port_send(struct port *p, int to, const void *data, size_t length)
{
    if (p->channels)
        port_must(strata_channel_send(p->out[to], data, length, STRATA_CHANNEL_FOREVER), "strata_channel_send");
    else
        port_must(strata_send(p->world, data, length, to, 1), "strata_send");
}

static inline void port_recv(struct port *p, void *data, size_t size)
{
    strata_channel_receiver_t *from;
    int other = p->n == 2 ? 1 - p->rank : 0;

    if (!p->channels) {
        if (p->n > 2 && p->rank == 0)
            other = STRATA_ANY_SOURCE;
        port_must(strata_recv(p->world, data, size, other, 1, NULL), "strata_recv");
        return;
    }
    from = p->in[other];
    for (int rc = STRATA_CHANNEL_ENDED; rc != STRATA_OK;) {
        if (p->set)
            port_must(strata_channel_set_next(p->set, STRATA_CHANNEL_FOREVER, &from), "strata_channel_set_next");
        rc = strata_channel_recv(from, data, size, NULL, STRATA_CHANNEL_FOREVER);
        if (p->set && rc == STRATA_CHANNEL_ENDED) /* this one has no more, others have */
            port_must(strata_channel_set_remove(p->set, from), "strata_channel_set_remove");
        else
            port_must(rc, "strata_channel_recv");
    }
}

/* From any: us for a message that comes by one of `channels` from rank 1 to a set that has all of them. */
#define PORT_HAS_SETS 1
static inline double port_from_any(struct port *p, int channels, long messages)
{
    strata_channel_sender_t **out = calloc((size_t)channels, sizeof(*out));
    strata_channel_receiver_t **in = calloc((size_t)channels, sizeof(*in)), *from;
    strata_channel_set_t *set = NULL;
    char name[16], byte = 0;

    if (!out || !in)
        port_must(STRATA_ERR_NOMEM, "channels");
    if (p->rank == 0)
        port_must(strata_channel_set_create(p->s, &set), "strata_channel_set_create");
    for (int i = 0; i < channels; i++) {
        (void)snprintf(name, sizeof(name), "any %d", i);
        if (p->rank != 0) {
            port_must(strata_channel_open_send(p->s, 0, name, &out[i]), "strata_channel_open_send");
            continue;
        }
        port_must(strata_channel_open_recv(p->s, 1, name, 4096, &in[i]), "strata_channel_open_recv");
        port_must(strata_channel_set_add(set, in[i]), "strata_channel_set_add");
    }
    double begin = 0;
    for (long i = -100; i < messages; i++) { /* one at a time, each asked for: the look is what differs */
        if (i == 0)
            begin = seconds(CLOCK_MONOTONIC);
        if (p->rank != 0) {
            port_recv(p, &byte, 1);
            port_must(strata_channel_send(out[channels / 2], &byte, 1, STRATA_CHANNEL_FOREVER), "strata_channel_send");
            continue;
        }
        port_send(p, 1, &byte, 1);
        port_must(strata_channel_set_next(set, STRATA_CHANNEL_FOREVER, &from), "strata_channel_set_next");
        port_must(strata_channel_recv(from, &byte, 1, NULL, STRATA_CHANNEL_FOREVER), "strata_channel_recv");
    }
    double took = seconds(CLOCK_MONOTONIC) - begin;
    for (int i = 0; i < channels; i++)
        if (p->rank != 0)
            port_must(strata_channel_end(out[i], STRATA_CHANNEL_FOREVER), "strata_channel_end");
    for (int i = 0; i < channels; i++) {
        if (p->rank != 0) {
            port_must(strata_channel_close_send(out[i]), "strata_channel_close_send");
            continue;
        }
        if (strata_channel_recv(in[i], &byte, 1, NULL, STRATA_CHANNEL_FOREVER) != STRATA_CHANNEL_ENDED)
            port_must(STRATA_ERR_STATE, "a message is left");
        port_must(strata_channel_close_recv(in[i]), "strata_channel_close_recv");
    }
    if (set)
        port_must(strata_channel_set_destroy(set), "strata_channel_set_destroy");
    free(out);
    free(in);
    return took / (double)messages * 1e6;
}

static inline void port_close(struct port *p)
{
    strata_channel_receiver_t *from;

    for (int i = 0; i < p->n; i++)
        if (p->out[i])
            port_must(strata_channel_end(p->out[i], STRATA_CHANNEL_FOREVER), "strata_channel_end");
    for (int i = 0; i < p->n; i++) {
        from = p->in[i];
        if (from && strata_channel_recv(from, NULL, 0, NULL, STRATA_CHANNEL_FOREVER) != STRATA_CHANNEL_ENDED)
            port_must(STRATA_ERR_STATE, "a message is left");
        if (p->out[i])
            port_must(strata_channel_close_send(p->out[i]), "strata_channel_close_send");
        if (from)
            port_must(strata_channel_close_recv(from), "strata_channel_close_recv");
    }
    if (p->set)
        port_must(strata_channel_set_destroy(p->set), "strata_channel_set_destroy");
    free(p->out);
    free(p->in);
    port_must(strata_finalize(p->s), "strata_finalize");
}

#endif

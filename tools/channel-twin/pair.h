/* Tables I and II of Secco et al. (PDP 2014): a stream from rank 0 to rank 1, and a ping-pong between them. */
#ifndef TWIN_PAIR_H
#define TWIN_PAIR_H

#include "support.h"

static const size_t stream_sizes[] = {10, 100, 1024, 5000, 10000, 25000, 50000, 65536, 200000, 400000};
static const size_t ping_pong_sizes[] = {10, 100, 1024, 5000, 10000, 25000, 50000};

static double stream_once(struct port *p, char *data, size_t bytes, uint64_t messages)
{
    double begin = seconds(CLOCK_MONOTONIC);

    for (uint64_t i = 0; i < messages; i++)
        port_send(p, 1, data, bytes);
    port_recv(p, data, TWIN_LARGEST);
    return seconds(CLOCK_MONOTONIC) - begin;
}

static double ping_pong_once(struct port *p, char *data, size_t bytes, uint64_t messages)
{
    double begin = seconds(CLOCK_MONOTONIC);

    for (uint64_t i = 0; i < messages; i++) {
        port_send(p, 1, data, bytes);
        port_recv(p, data, TWIN_LARGEST);
    }
    return (seconds(CLOCK_MONOTONIC) - begin) / 2;
}

/* Microseconds for a message, of as many as take `least` seconds. Shorter trials before it warm everything up. */
static double measure(struct port *p, uint64_t what, char *data, size_t bytes, double least)
{
    for (uint64_t messages = 32;; messages *= 4) {
        struct order order = {what, bytes, messages};
        port_send(p, 1, &order, sizeof(order));
        double took =
            what == ORDER_STREAM ? stream_once(p, data, bytes, messages) : ping_pong_once(p, data, bytes, messages);
        if (took >= least)
            return took / (double)messages * 1e6;
    }
}

static void pair_lead(struct port *p, char *data, double least)
{
    struct order end = {ORDER_END, 0, 0};

    for (size_t i = 0; i < sizeof(stream_sizes) / sizeof(stream_sizes[0]); i++)
        printf("stream %zu %.6f\n", stream_sizes[i], measure(p, ORDER_STREAM, data, stream_sizes[i], least));
    for (size_t i = 0; i < sizeof(ping_pong_sizes) / sizeof(ping_pong_sizes[0]); i++)
        printf("ping-pong %zu %.6f\n", ping_pong_sizes[i],
               measure(p, ORDER_PING_PONG, data, ping_pong_sizes[i], least));
    port_send(p, 1, &end, sizeof(end));
    port_recv(p, data, TWIN_LARGEST);
}

static void pair_follow(struct port *p, char *data)
{
    struct order order;

    do {
        port_recv(p, &order, sizeof(order));
        for (uint64_t i = 0; i < order.messages; i++) {
            port_recv(p, data, TWIN_LARGEST);
            if (order.what == ORDER_PING_PONG)
                port_send(p, 0, data, order.bytes);
        }
        if (order.what != ORDER_PING_PONG)
            port_send(p, 0, data, 1);
    } while (order.what != ORDER_END);
}

static void pair_table(struct port *p, double least)
{
    char *data = buffer(TWIN_LARGEST);

    if (p->rank == 0)
        pair_lead(p, data, least);
    else if (p->rank == 1)
        pair_follow(p, data);
    free(data);
#ifdef PORT_HAS_SETS
    for (int channels = 1; p->channels && channels <= 256; channels *= 256) {
        double took = port_from_any(p, channels, 20000);
        if (p->rank == 0)
            printf("from-any %d %.6f\n", channels, took);
    }
#endif
}

#endif

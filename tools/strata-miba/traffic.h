/* Traffic of a case: what the endpoints of both sides are built for, and which pattern of messages is measured. */
#ifndef MIBA_TRAFFIC_H
#define MIBA_TRAFFIC_H

#include <stdbool.h>
#include "names.h"

enum pattern {
    PATTERN_PING_PONG, /* one message to and fro: half a round trip; reads and atomics: a whole one, from one side */
    PATTERN_STREAM,    /* a window of messages one way */
    PATTERN_BOTH_WAYS, /* a window each way at once */
    PATTERN_INCAST,    /* the other side's threads send to the leading side, each a window */
};

#define MOST_QPS      64u
#define MOST_SEGMENTS 32u
#define MOST_LOADERS  16u

/* Shapes start from traffic_base: the paper's base configuration (section 5.2.1). */
struct traffic {
    enum pattern pattern;
    enum miba_op op;
    enum miba_transport transport;
    uint32_t size;
    uint32_t window;       /* messages in flight; 1 with ping-pong */
    uint32_t segments;     /* entries of a message's list at the sender */
    uint32_t max_sge;      /* asked for at creation; at least `segments` */
    uint32_t scatter;      /* entries of a receive's list, and as many as are asked for at creation: */
    uint32_t max_recv_sge; /* at least `scatter` */
    uint32_t mtu;          /* bytes */
    uint32_t qps;          /* messages go by these in turn... */
    uint32_t burst;        /* ...after so many calls of ibv_post_send on one, and by as many messages of one buffer */
    uint32_t inline_bytes; /* messages of up to these go inline; 0: none */
    uint32_t signal_every; /* every so many messages make a completion */
    uint32_t list;         /* work requests of one call of ibv_post_send */
    uint64_t region;       /* bytes of the memory region, the buffers at its end; no less than they take */
    uint32_t buffers;      /* messages use these in turn... */
    uint32_t reuse_period; /* ...or, unless 0: every so many messages the first one, between them others in turn */
    uint32_t compute_ns;   /* computation between posting and waiting */
    uint32_t loaders; /* threads of the other side that write words meanwhile, or that send (incast), each by a pair of
                         its own */
    bool copied;      /* no message goes inline, whatever inline_bytes says */
    bool per_message; /* streams are reported in nanoseconds of a message, not in MB/s */
    bool check_order; /* ping-pong: whether all bytes of a write are there when its last one is */
    bool events;      /* waits for events of the receiving queue, or polls */
    bool send_events; /* ping-pong: waits for events of the sending queue, too */
    bool one_cq;      /* ping-pong: one completion queue for both directions */
    bool stamps;      /* ping-pong: the clock is read before each message, and the time kept */
    bool srq;
    bool memfd;
    uint8_t sl;
    uint16_t pkey_index;
};

struct miba;
struct miba_case;
void traffic_base(const struct miba *m, const struct miba_case *c, enum pattern pattern, struct traffic *t);
/* Tests of two variants, "latency" and "bandwidth": the base configuration with the pattern of the case's. */
extern const char *const traffic_variants[];
void traffic_of_variant(const struct miba *m, const struct miba_case *c, struct traffic *t);
/* The buffer that message `i` uses. */
static inline uint32_t traffic_buffer(const struct traffic *t, uint32_t i)
{
    if (t->buffers == 1)
        return 0;
    if (t->reuse_period == 0)
        return i / t->burst % t->buffers;
    if (i % t->reuse_period == 0)
        return 0;
    return 1 + (i - i / t->reuse_period - 1) % (t->buffers - 1);
}

#endif

/* An endpoint: what one side needs for the traffic of a case, from its memory to its connected queue pairs. */
#ifndef MIBA_ENDPOINT_H
#define MIBA_ENDPOINT_H

#include <infiniband/verbs.h>
#include "silence.h"
#include "test.h"

#define MOST_LIST 64u

#define PAIR_SLOTS 256u

#define STAMPS 4096u

/* What the other side says of itself. */
struct remote {
    uint32_t qpn[MOST_QPS + MOST_LOADERS];
    uint64_t address; /* of the receiving buffers */
    uint64_t word;    /* address of the word for atomics */
    uint32_t rkey;
    uint32_t lid, mtu;
    uint32_t reads;      /* and atomic operations that it answers at once */
    uint32_t processors; /* that it may use */
    union ibv_gid gid;
};

/* A completion queue that is waited for by events, on a channel of its own. */
struct event_queue {
    struct ibv_cq *cq; /* NULL: none */
    struct ibv_comp_channel *channel;
    bool armed; /* it makes an event for its next completion, or has made one that was not taken */
};
#define EVENT_QUEUES 2u

/* Why a loop ended before all was there. */
enum over {
    OVER_NOT,
    OVER_STIRRED /* the other side says something, or is gone */,
    OVER_SILENT /* no progress for timeout_s */
};

struct endpoint {
    struct miba *m;
    struct traffic t;
    char *mapped; /* one region, which ends with the following */
    size_t mapped_bytes;
    char *memory;    /* a page with the word for atomics, receiving buffers, sending buffers */
    uint64_t stride; /* from one buffer's pages to the next one's */
    uint32_t places; /* of a buffer in its pages, one cache line from each to the next; a power of 2 */
    struct ibv_mr *mr;
    struct ibv_cq *scq, *rcq; /* the same one with t.one_cq */
    struct event_queue by_event[EVENT_QUEUES];
    struct ibv_srq *srq;
    uint8_t pair_of[PAIR_SLOTS]; /* by number: the first queue pair whose number ends so */
    uint32_t pairs;              /* t.qps of the traffic, then one for each loader; with incast the loaders' are all */
    struct ibv_qp *qp[MOST_QPS + MOST_LOADERS];
    struct ibv_cq *loader_cq[MOST_LOADERS];
    struct ibv_ah *ah;
    struct remote remote;
    uint32_t depth;      /* receives that are posted, of each queue pair */
    uint32_t sent;       /* messages posted so far */
    uint32_t received;   /* messages received so far */
    uint32_t unsignaled; /* messages since the last one that makes a completion */
    uint32_t stamped;    /* times kept so far */
    enum over over;
    uint64_t computed_ns;          /* computation in streams so far */
    uint64_t checked, torn;        /* writes whose order of visibility was looked at, and that were not whole */
    uint64_t posted_all, lost_all; /* messages of all batches, and those of them that did not arrive (UC, UD) */
    struct ibv_send_wr wr[MOST_LIST];
    struct ibv_sge sge[MOST_LIST][MOST_SEGMENTS];
    struct ibv_recv_wr rwr;
    struct ibv_sge rsge[MOST_SEGMENTS];
    uint64_t stamps[STAMPS]; /* the last ones, by the processor's counter */
};

#define ENDPOINT_QKEY 0x11111111u

/* Bytes before a received datagram. */
#define ENDPOINT_GRH_BYTES 40u

/* Makes everything for `t`, not yet connected. On failure nothing is left. */
enum miba_status endpoint_make(struct endpoint *e, struct miba *m, const struct traffic *t);
void endpoint_destroy(struct endpoint *e);
/* What the other side has to know, as one line; and reads that line. False: it makes no sense. */
void endpoint_info(const struct endpoint *e, char *line, size_t size);
bool endpoint_take_info(struct endpoint *e, const char *line);
/* Posts the receives, and connects all queue pairs to the remote ones. */
enum miba_status endpoint_connect(struct endpoint *e);

#define CACHE_LINE 64u

/* Sets stride and places, by the traffic. */
static inline void endpoint_lay_out(struct endpoint *e)
{
    const uint64_t used = (uint64_t)e->t.size + (e->t.transport == UD ? ENDPOINT_GRH_BYTES : 0);

    e->stride = used ? (used + 4095) / 4096 * 4096 : 4096;
    e->places = 1;
    while (used + (2 * (uint64_t)e->places - 1) * CACHE_LINE <= e->stride && 2 * e->places * CACHE_LINE <= 4096)
        e->places *= 2;
}

/* Where a buffer is, from the first one. Each has pages of its own, and another place in them than its neighbours: if
 * all began with their pages, a few hundred would fill the sets of the processor's caches where such addresses go, and
 * its misses would be taken for the device's. */
static inline uint64_t endpoint_offset(const struct endpoint *e, uint32_t buffer)
{
    return e->stride * buffer + CACHE_LINE * (buffer & (e->places - 1));
}
static inline char *endpoint_rx(const struct endpoint *e, uint32_t buffer)
{
    return e->memory + 4096 + endpoint_offset(e, buffer);
}
static inline char *endpoint_tx(const struct endpoint *e, uint32_t buffer)
{
    return e->memory + 4096 + e->stride * e->t.buffers + endpoint_offset(e, buffer);
}

/* Waiting (endpoint_wait.c). */
struct idle {
    unsigned turns;
    struct silence quiet;
};
#define IDLE_TURNS 2048u
/* The same of a loop that watches memory: a turn is a nanosecond, a look at the link a system call, during which the
 * write that is awaited is not seen. */
#define WATCH_TURNS 65536u
/* After a turn of a loop without progress; e->over says whether the loop has to end. */
void endpoint_look(struct endpoint *e, struct idle *w);
/* Sleeps until the queue, which is armed, has made an event. */
enum miba_status endpoint_sleep(struct endpoint *e, struct event_queue *q);
/* Arms it. Only when it was polled empty: some adapters make an event at once for completions that were not polled, and
 * the next wait would take that one. */
enum miba_status endpoint_arm(struct endpoint *e, struct event_queue *q);
/* The failure that a completion says. */
enum miba_status endpoint_failed(struct endpoint *e, const struct ibv_wc *wc);
/* MIBA_FAILED or MIBA_LOST with the reason why a loop ended early. */
enum miba_status endpoint_over(struct endpoint *e);

#endif

/* Contract of the btl framework: byte transfer layers move bytes, without message semantics.
 *
 * A component makes one module per port or rail it can use (usually one). A module makes an endpoint per peer on the
 * first message to that peer. Reliable: a fragment whose send returned STRATA_OK is delivered exactly once while the
 * peer lives. Order is only promised where ST_BTL_ORDERED is set; upper layers keep sequence numbers.
 *
 * Threads. Below STRATA_THREAD_MULTIPLE one thread at a time is inside the context. At STRATA_THREAD_MULTIPLE the upper
 * layer serialises all ops of one context by its own lock, so a module needs no lock of its own for state that belongs
 * to the context; memory shared with peers is the module's own concern in either case.
 *
 * Re-entrance. `deliver` and completion callbacks are called from progress only, never from inside send, put or get (a
 * get that finishes at once reports it by its return value). Inside a callback send, put, get, reg and dereg may be
 * called; progress may not. */
#ifndef STRATA_SDK_BTL_H
#define STRATA_SDK_BTL_H

#include <strata/sdk/atomic.h>
#include <strata/sdk/btl_facts.h>
#include <strata/sdk/component.h>
#include <strata/sdk/payload.h>
#include <strata/sdk/rte.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_btl;
struct st_btl_endpoint;
struct st_btl_rdma;
struct st_btl_hints;
struct st_worker;

/* Longest active-message header, bytes. */
#define ST_BTL_HDR_MAX 48u
/* Destination of an active message: a client of the worker, or the worker itself (from ST_AM_LANE on). */
enum st_am {
    ST_AM_PML = 0,
    ST_AM_STREAM = 1,
    ST_AM_COLL = 2,
    ST_AM_TEST = 3,
    ST_AM_LANE = 4,   /* messages of clients that may have to be sent again */
    ST_AM_NOTICE = 5, /* notices of puts (notify.h) */
    ST_AM_COUNT = 6,
    ST_AM_CLIENTS = ST_AM_LANE, /* those below it */
    ST_AM_FREQUENT = ST_AM_PML  /* the client with most messages: a transport may have a shorter path for these */
};

/* An arrived fragment. `hdr` and `data` point into the transport's memory and are valid until deliver returns. The peer
 * may be able to write these bytes: copy a field before checking and using it. */
struct st_frag {
    const void *hdr;    /* hdr_len bytes */
    const void *data;   /* len bytes */
    uint32_t hdr_len;   /* bytes at hdr */
    uint32_t len;       /* bytes at data */
    int rank;           /* job rank of the sender; established by the transport, not taken from the wire */
    struct st_btl *btl; /* the module of arrival */
};

/* Handler of an arrived fragment; see the notes on re-entrance above. */
typedef void (*st_deliver_fn)(void *arg, const struct st_frag *frag);

/* Capability bits of a module and of an endpoint (an endpoint may have fewer, and may lose some at run time). */
enum {
    ST_BTL_ORDERED = 1u << 0,   /* fragments of one endpoint arrive in the order sent */
    ST_BTL_GET = 1u << 1,       /* get works */
    ST_BTL_PUT = 1u << 2,       /* put works */
    ST_BTL_NEEDS_REG = 1u << 4, /* memory of put and get must be registered at both ends; keys travel */
    ST_BTL_PASSIVE = 1u << 5,   /* nothing arrives before this module's first connect: not polled until then */
    /* progress costs a system call or the like. It is called less often the longer nothing has arrived, so that an idle
     * module does not slow down the others: late by a sixteenth of that silence, at most 0.1 ms */
    ST_BTL_COSTLY_POLL = 1u << 6,
    /* registrations are kept after their use, so that the next one of the same memory is free: with ST_BTL_NEEDS_REG */
    ST_BTL_REG_KEPT = 1u << 7,
    /* A connection may fail (path_failed) and be re-established by connect; data in flight is lost. */
    ST_BTL_MENDS = 1u << 8,
    /* Of an endpoint; comes and goes. A burst: more messages in a short time than are worth a fragment each, so the
     * upper layer should combine short messages without waiters. Set by the module, which still accepts messages while
     * it has room; cleared by the module, and by the upper layer after sending the held-back messages. */
    ST_BTL_CROWDED = 1u << 9,
    /* with ST_BTL_MENDS: messages to a peer are kept until they have arrived, even if this is the only path */
    ST_BTL_KEEP = 1u << 10,
    /* with ST_BTL_MENDS: a re-established connection delivers nothing before path_failed was called at this end for the
     * previous connection, if anything could be sent by that */
    ST_BTL_BOTH_TOLD = 1u << 11,
    /* Of an endpoint; comes and goes. A send would return STRATA_ERR_AGAIN now; callers can avoid a useless copy. A
     * hint, for modules that know this without a check. */
    ST_BTL_FULL = 1u << 12,
    /* reg costs a few instructions whatever the length, so that a whole message is registered before it is announced:
     * with ST_BTL_NEEDS_REG */
    ST_BTL_REG_CHEAP = 1u << 13,
    /* puts go by a connection beside that of messages: in questions and answers data that fits a message is sent faster
     * than put, as the answer comes back by the same connection. With ST_BTL_PUT */
    ST_BTL_PUT_APART = 1u << 14
};
/* Largest st_btl.max_overtaking: clients number messages by 16 bits, and one may be a batch of 32. */
#define ST_BTL_OVERTAKING_MOST 1023u

/* The part of an endpoint that upper layers read. First member of the module's own endpoint struct. */
struct st_btl_endpoint {
    struct st_btl *btl; /* its module */
    int rank;           /* job rank of the peer */
    uint32_t caps;      /* capability bits that hold now */
};

/* How to wait for this transport without spinning. Handed to arm as {.fd = -1, .by_fd = ...}; arm fills in at most one
 * of fd and word, and neither when nothing from outside the process can wake the module. */
struct st_btl_wait {
    int fd;                     /* readable when something arrives, or -1 */
    bool by_fd;                 /* other transports are waited for as well: only a descriptor will do */
    ST_ATOMIC(uint32_t) * word; /* futex (shared), or NULL: wait while it equals `expect`. A count: each waker adds to
                                 it, as does the worker, to wake the sleeper from inside the process */
    uint32_t expect;            /* value of *word that means: nothing has arrived */
    bool deaf;                  /* set by arm: not every arrival wakes, so that the sleep is 50 us at most */
};

/* Takes one line of a memory report; the strings are valid during the call. */
typedef void (*st_mem_line_fn)(void *arg, const strata_mem_line_t *line);

/* What may be NULL is said at each op; after open the base replaces NULL in send_payload, mem_report and
 * describe by defaults, so that callers need no check there. */
struct st_btl_ops {
    /* Whether the module can reach `rank`; cheap, without a connection; may read the peer's published data. Returns
     * STRATA_OK or STRATA_ERR_UNREACHABLE. */
    int (*reach)(struct st_btl *btl, int rank);
    /* Makes the endpoint. May return before the connection is up: until then sends return STRATA_ERR_AGAIN, or queue
     * inside. Called again for a peer whose endpoint has failed: returns a new endpoint (the old one is then
     * disconnected), or the old one with a new connection. STRATA_ERR_AGAIN: not yet; STRATA_ERR_UNREACHABLE: not now,
     * or never; STRATA_ERR_PEER: never, the peer has left. */
    int (*connect)(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
    /* Frees the endpoint. Fragments already sent still arrive. */
    void (*disconnect)(struct st_btl_endpoint *ep);
    /* Adjusts the facts for this endpoint; *facts has the module's. NULL: the module's facts apply to all peers. A
     * module that learns other facts later calls st_worker_facts_changed. */
    void (*facts)(const struct st_btl_endpoint *ep, struct st_btl_facts *facts);

    /* Sends an active message to client `am`, which travels with it: hdr (hdr_len <= ST_BTL_HDR_MAX) and len contiguous
     * bytes at data, with hdr_len + len <= max_send + ST_BTL_HDR_MAX (`len` may exceed max_send where hdr is short).
     * Both are copied or transmitted on return. STRATA_OK, STRATA_ERR_AGAIN (nothing accepted), STRATA_ERR_PEER. This
     * is the hot path. */
    int (*send)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                uint32_t len);
    /* The same from a window of any kind of data, gathered directly into the transport's buffer. NULL: the base gathers
     * into a bounce buffer and calls send. */
    int (*send_payload)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                        const struct st_payload *payload);

    /* Handles pending events in bounded time; returns their number. NULL: the module needs no polling (stays NULL). */
    int (*progress)(struct st_btl *btl);
    /* Prepares to sleep: fills *w and ensures that an arrival wakes the sleeper, as does room after a refused send
     * (STRATA_ERR_AGAIN). STRATA_ERR_AGAIN: an event is pending, do not sleep; also returned once after a refused send
     * by a module that is not notified of room. `disarm` is called after the sleep. NULL both: the module cannot wake a
     * sleeper, who then sleeps for 50 us at most. */
    int (*arm)(struct st_btl *btl, struct st_btl_wait *w);
    /* Ends what arm prepared. */
    void (*disarm)(struct st_btl *btl);

    /* Reports every byte that the module holds, by category. May be NULL. */
    void (*mem_report)(struct st_btl *btl, st_mem_line_fn line, void *arg);
    /* Returns one JSON object about the endpoint for --report-transports ("single_copy", "device", ...), malloc'ed, or
     * NULL. `ep` may be NULL: about the module. May be NULL. */
    char *(*describe)(struct st_btl *btl, struct st_btl_endpoint *ep);
    /* Flushes pending output (bounded by its own timeout) and frees the module and its endpoints. */
    void (*close)(struct st_btl *btl);
};

/* First member of the module's own struct. Constant after open, except the counters. */
struct st_btl {
    const struct st_btl_ops *ops;         /* the module's */
    const struct st_btl_rdma *rdma;       /* get, put, registration (btl_rdma.h); NULL before open returns: none */
    const struct st_btl_hints *hints;     /* optional operations (btl_hints.h); NULL before open returns: none */
    strata_t *context;                    /* to which it belongs */
    struct st_worker *worker;             /* of that context; set by the base before the first connect */
    const struct st_component *component; /* whose open made it */
    /* By enum st_am: set by the worker when a client joins. Before that, the base sets a function that drops fragments
     * without a client, so fn is never NULL. */
    struct {
        st_deliver_fn fn;
        void *arg;
    } am[ST_AM_COUNT];
    /* Called when a peer is found dead or its connection lost beyond repair; set by the base before the first connect.
     * May be called from inside any op. Called before an operation ends with STRATA_ERR_PEER for that reason, so that
     * the reason is known at the first error. */
    void (*peer_failed)(void *arg, int rank, int rc, const char *reason);
    void *peer_failed_arg; /* its and path_failed's first argument */
    /* Called when the connection of one endpoint is lost beyond repair while the peer may live and be reached by
     * another module: from inside an op or progress, before operations in flight end with STRATA_ERR_PEER. The endpoint
     * remains, returning STRATA_ERR_PEER, until it is disconnected. The layer above decides whether the peer has
     * failed. Set by the base, like peer_failed. */
    void (*path_failed)(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason);

    uint32_t caps;           /* capability bits */
    uint32_t max_overtaking; /* bound on reordering: the largest number of later messages of an endpoint that may arrive
                              * before an earlier one; 0 with ST_BTL_ORDERED, else 1 to ST_BTL_OVERTAKING_MOST */
    uint32_t eager_limit;    /* largest payload worth sending before the receiver has matched, bytes */
    uint32_t max_send;       /* largest payload of one active message, bytes */
    uint32_t pipeline_send;  /* payload per fragment when a message is cut up, bytes; <= max_send */
    size_t rdma_pipeline;    /* get or put in pieces of this size when memory must be registered on the fly */
    struct st_btl_facts facts; /* of all peers of which ops->facts says nothing else. Of several paths those with the
                                  smallest latency are used, with the bandwidth as their weight in striping */
    int exclusivity;           /* of those that reach a peer only the modules of the highest value are used */
    uint64_t bytes_sent;       /* counters for the transport report: bytes sent by messages and put */
    uint64_t bytes_got;        /* bytes fetched from peers by get, which the peer's bytes_sent does not include */
    uint64_t messages_sent;    /* active messages, puts and gets */
    void *bounce;              /* the base's (st_btl_flatten): max_send bytes, or NULL; freed and reported by it */
};

/* What a btl component's `ops` points to. */
struct st_btl_component_ops {
    /* Makes the modules: an array in *mods (malloc'ed, freed by the base, also after an error) with *n entries. Does
     * not communicate with peers; publishes data for peers by st_rte()->ops->put under the component's name. *n == 0
     * with a reason by st_reject: the component works, but has no task in this job; this is no error even if the user
     * named it. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_btl ***mods, size_t *n);
    /* 0: open is called in every job. Otherwise the exclusivity of all modules of a component whose open costs much
     * (objects of a device, registered memory, libraries): it is not opened where all ranks of the job are on this
     * machine and a module of higher exclusivity is open, unless the user's list names the component or a setting is
     * one of its parameters. */
    int costly_exclusivity;
};

/* Returns a payload of at most max_send bytes in one piece: the caller's memory if it is contiguous, otherwise a packed
 * copy in memory of the base, valid until the next call for this module. *data is NULL if the payload is empty.
 * STRATA_ERR_ARG, STRATA_ERR_NOMEM, or the error of packing. */
ST_API int st_btl_flatten(struct st_btl *btl, const struct st_payload *payload, const void **data);

/* The facts about the path to an endpoint's peer. */
static inline struct st_btl_facts st_btl_facts_of(const struct st_btl_endpoint *ep)
{
    struct st_btl_facts facts = ep->btl->facts;

    if (ep->btl->ops->facts)
        ep->btl->ops->facts(ep, &facts);
    return facts;
}

/* Delivers an arrived fragment to its client. */
static inline void st_btl_deliver(struct st_btl *btl, enum st_am am, const struct st_frag *frag)
{
    btl->am[am].fn(btl->am[am].arg, frag);
}

#ifdef __cplusplus
}
#endif
#endif

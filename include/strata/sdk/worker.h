/* The worker: one per context, between the clients (PML, collectives, channels) and the BTLs. It provides the common
 * functions of all clients: the context's lock, polling and waiting, reports of failed peers, draining. A client joins
 * with a table of functions; sends and arrivals pass directly between client and transport.
 *
 * Threads. Below STRATA_THREAD_MULTIPLE the lock does nothing. At STRATA_THREAD_MULTIPLE it serialises all ops of the
 * context's transports and clients; it is not recursive. docs/design/worker.md lists the writers of each cache line. */
#ifndef STRATA_SDK_WORKER_H
#define STRATA_SDK_WORKER_H

#include <pthread.h>
#include <strata/sdk/atomic.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/peer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A module that is polled. */
struct st_worker_poll {
    int (*progress)(struct st_btl *btl); /* NULL behind the last */
    struct st_btl *btl;                  /* its argument */
};

/* Bits of st_worker.attention: a round of progress has more to do than to poll. A client has two of its own, shifted by
 * its am: while one is set its `attend` is called. */
enum {
    ST_ATTEND_WORK = 1u,         /* << am: the client has work that no transport announces: no thread sleeps for long */
    ST_ATTEND_LOOK = 1u << 8,    /* << am: the client checks something now and then */
    ST_ATTEND_FAILURE = 1u << 16 /* times the number of reported failures that have not been handled */
};

/* Functions of a client; the table must remain valid until the client leaves. All but `am` and `deliver` may be NULL.
 * `arg` is the argument of st_worker_join. */
struct st_client {
    enum st_am am;         /* the id of its active messages; one client for each id */
    st_deliver_fn deliver; /* receives them; every module calls it directly */
    /* A put with notice (notify.h) has arrived: its data is in place, and `notice` is the sender's number. From inside
     * a BTL's progress, like deliver. */
    void (*notified)(void *arg, int rank, uint32_t notice);
    /* Does the client's own work after the modules have been polled, while one of its bits of `attention` is set. With
     * the lock held. Returns the number of events. */
    int (*attend)(void *arg);
    /* The peer has been connected, or its paths or their costs have changed: the client renews the endpoints and limits
     * that it has stored. With the lock held. */
    void (*peer_changed)(void *arg, struct st_peer *peer);
    /* Sends the client's first fragments for the peer, while the client's bit of peer->firsts is set; the client clears
     * the bit when none is left. The client keeps them in its own list because sequence numbers are assigned when a
     * fragment is sent. *busy: bit 0 is set when path 0 accepts nothing more in this round. With the lock held. Returns
     * the number of fragments sent. */
    int (*firsts)(void *arg, struct st_peer *peer, uint32_t *busy);
    /* A peer has failed for good; peer->failed is the error. The client ends all operations that wait for the peer; its
     * pending work is dropped next. With the lock held, from progress, after the messages that the peer sent before its
     * end have been delivered. Once per peer. */
    void (*peer_failed)(void *arg, struct st_peer *peer);
    /* Runs completion callbacks outside every lock, after a round with a request for it (st_worker_news). */
    void (*outside)(void *arg);
    /* Whether the client has no pending work of its own besides the work queued at the worker. With the lock held. */
    bool (*drained)(void *arg);
};

/* How paths that fail are treated. Set by the PML, whose parameters they are, before the first connect. */
struct st_worker_paths {
    int64_t retry_ms; /* delay before a failed path, one of several, is reconnected */
    int64_t wait_ms;  /* time after which a peer fails if no path works, although some may recover */
    bool keep;        /* messages to a peer with a single path are also kept until acknowledged */
};

/* The members that every poll reads are on one cache line, the lock on another. Read-only for clients except for `news`
 * and `paths`. */
struct st_worker {
    const struct st_worker_poll *poll; /* of the modules that are polled */
    ST_ATOMIC(uint32_t) attention;     /* ST_ATTEND_* */
    uint32_t n_failed;                 /* failed peers */
    uint32_t spin;                     /* polls of a blocking call before it waits otherwise; the PML may set it */
    bool threaded;                     /* STRATA_THREAD_MULTIPLE */
    ST_ATOMIC(bool) news;              /* something is due outside the lock: st_worker_news */
    ST_ATOMIC(bool) busy;              /* st_worker_is_busy */
    strata_t *context;                 /* to which it belongs */
    struct st_bml *bml;                /* selects the BTLs of each peer */
    pthread_mutex_t mutex __attribute__((aligned(64))); /* the lock */
    ST_ATOMIC(uint32_t) lock_waiters; /* threads that want to start something: progress lets them pass */
    struct st_worker_paths paths;     /* for lanes */
    uint64_t n_paths_failed;          /* connections lost while the peer was reached by another */
};

/* Adds a client; `arg` is the first argument of its functions. No other thread may be inside the context.
 * STRATA_ERR_ARG: its active messages have an owner. */
ST_API int st_worker_join(struct st_worker *w, const struct st_client *client, void *arg);
/* Removes a client, if it has joined: none of its functions is called any more, its queued work is forgotten, and
 * messages that arrive for it are dropped. The client frees its entries of st_peer.client. Without the lock; no other
 * thread may be inside the context meanwhile. */
ST_API void st_worker_leave(struct st_worker *w, const struct st_client *client);

/* ---- the lock ---- */

/* Waits for the lock while another thread holds it. */
ST_API void st_worker_lock_wait(struct st_worker *w);
/* Takes the lock where there are threads. */
static inline void st_worker_lock(struct st_worker *w)
{
    if (ST_UNLIKELY(w->threaded) && pthread_mutex_trylock(&w->mutex) != 0)
        st_worker_lock_wait(w);
}
/* Releases the lock. */
static inline void st_worker_unlock(struct st_worker *w)
{
    if (ST_UNLIKELY(w->threaded))
        pthread_mutex_unlock(&w->mutex);
}

/* ---- polling ---- */

/* Polls `btl` from now on, unless it is polled already or needs no polling. With the lock held. */
ST_API void st_worker_poll_add(struct st_worker *w, struct st_btl *btl);
/* The next round polls every module, also those whose poll is costly. With the lock held. */
ST_API void st_worker_poll_soon(struct st_worker *w);
/* Failures, then the clients that have asked; with the lock held. `polled`: events of the modules in this round. */
ST_API int st_worker_attend_all(struct st_worker *w, int polled);

/* Every polled module once; with the lock held. Returns events. */
static inline int st_worker_poll_modules(const struct st_worker *w)
{
    int n = 0;

    for (const struct st_worker_poll *p = w->poll; p->progress; p++) /* connecting inside may add one behind the last */
        n += p->progress(p->btl);
    return n;
}

/* Every polled module once, then what is due; with the lock held. Returns events. */
static inline int st_worker_poll(struct st_worker *w)
{
    int n = st_worker_poll_modules(w);

    if (ST_UNLIKELY(atomic_load_explicit(&w->attention, memory_order_relaxed) != 0))
        n += st_worker_attend_all(w, n);
    return n;
}

/* The same without a result, for contexts without threads. */
static inline void st_worker_poll_once(struct st_worker *w)
{
    for (const struct st_worker_poll *p = w->poll; p->progress; p++)
        (void)p->progress(p->btl);
    if (ST_UNLIKELY(atomic_load_explicit(&w->attention, memory_order_relaxed) != 0))
        (void)st_worker_attend_all(w, 0);
}

/* One round of progress: the lock, st_worker_poll, then the callbacks outside the lock. Returns the number of events.
 * If another thread makes progress already, which serves this thread too, it returns 0 at once. */
ST_API int st_worker_progress(struct st_worker *w);

/* Requests a call of st_worker_outside: a failure must be reported, a callback called, or a sleeper checked. */
static inline void st_worker_news(struct st_worker *w)
{
    atomic_store_explicit(&w->news, true, memory_order_relaxed);
}
/* Whether such a request is pending; for callers that poll by st_worker_poll, or release the lock. */
static inline bool st_worker_has_news(struct st_worker *w)
{
    return atomic_load_explicit(&w->news, memory_order_relaxed);
}
/* Reports failures, then calls each client's `outside`. Without the lock. */
ST_API void st_worker_outside(struct st_worker *w);

/* Wakes the thread that sleeps in the transports, if any, and rechecks the conditions of all sleepers, after an event
 * that no transport signals. Any thread, with or without the lock. */
ST_API void st_worker_wake(struct st_worker *w);
/* A BTL has woken another process of this machine. The kernel may have placed it on this thread's processor: the next
 * round yields the processor once before it spins. With the lock held. */
ST_API void st_worker_woke(struct st_worker *w);
/* Sets bits of a client: its attend is called in each round from now on, also if all threads sleep. With the lock held.
 */
static inline void st_worker_attend(struct st_worker *w, uint32_t bits)
{
    atomic_fetch_or_explicit(&w->attention, bits, memory_order_relaxed);
    if (ST_UNLIKELY(w->threaded))
        st_worker_wake(w);
}
/* Clears them. With the lock held. */
static inline void st_worker_calm(struct st_worker *w, uint32_t bits)
{
    atomic_fetch_and_explicit(&w->attention, ~bits, memory_order_relaxed);
}

/* ---- waiting ---- */

/* Whether other processes want this processor, as yields that took long have shown. A waiting thread should then sleep:
 * spinning uses up the share of the processor that it needs after the wait. */
static inline bool st_worker_is_busy(struct st_worker *w)
{
    return ST_UNLIKELY(atomic_load_explicit(&w->busy, memory_order_relaxed));
}
/* Polls before a wait yields or sleeps; on a busy machine, enough for an answer that is already in flight. */
static inline uint32_t st_worker_spins(struct st_worker *w)
{
    return st_worker_is_busy(w) && w->spin > 256 ? 256 : w->spin;
}
/* Waits until `done(arg)` is true: progresses, spins, yields, sleeps until a transport, st_worker_wake or another
 * thread that makes progress ends the sleep. `done` must have no side effects. It is called without the lock, by any
 * thread that makes progress, by one at a time, and may be called again after it has been true. */
ST_API void st_worker_wait(struct st_worker *w, bool (*done)(void *arg), void *arg);
/* The same for a caller that has spun already. */
ST_API void st_worker_wait_long(struct st_worker *w, bool (*done)(void *arg), void *arg);
/* The same for a `done` with side effects, which takes a message or makes progress: only the calling thread calls it.
 */
ST_API void st_worker_wait_acting(struct st_worker *w, bool (*done)(void *arg), void *arg);
/* Waits until no work is pending and every client is drained; work for failed peers is dropped. */
ST_API void st_worker_drain(struct st_worker *w);

/* Announces that the costs of a path to the peer have changed (st_btl_ops.facts): the clients renew their limits
 * (peer_changed). No effect if the peer is not connected or has failed. From a BTL's progress, not inside a callback.
 */
ST_API void st_worker_facts_changed(struct st_worker *w, int rank);

/* ---- failures ---- */

/* Records that a peer is dead. Any thread, also from inside a BTL's op with the lock held. The next round of progress
 * notifies the clients, then the log and the embedder. Further calls for the same rank have no effect. */
ST_API void st_worker_peer_failed(struct st_worker *w, int rank, int rc, const char *reason);
/* Handles and reports recorded failures now, so that the reason is reported before the error becomes visible. Outside
 * every lock. */
ST_API void st_worker_tell_failures(struct st_worker *w);
/* Counts a dropped malformed fragment in *count, and logs the first few in the name of `component`. */
ST_API void st_worker_protocol_error(struct st_worker *w, const char *component, const struct st_frag *frag,
                                     const char *what, uint64_t *count);

#ifdef __cplusplus
}
#endif
#endif

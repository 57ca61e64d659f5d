/* Embedding: a program (an MPI library, a test that runs ranks as threads) that brings its own process
 * management and wants Strata's messaging.
 *
 * The embedder fills a strata_host_t, passes it in strata_config_t.host, and uses the calls of <strata/strata.h>
 * plus those below, which let it own request storage and take completion by callback. */
#ifndef STRATA_HOST_H
#define STRATA_HOST_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n_ranks of an embedder to whose job processes may be added (MPI_Comm_spawn): transports then expect peers that were
 * not there at strata_init. */
#define STRATA_RANKS_OPEN INT32_MAX

/* Tags below STRATA_ANY_TAG are the embedder's own: at a context with a strata_host_t, sends, receives and probes take
 * tags from STRATA_TAG_HIDDEN down to INT_MIN as well. STRATA_ANY_TAG never matches them, so that an MPI library's
 * collectives can share a communicator with its users. Without an embedder they are STRATA_ERR_TAG. */
#define STRATA_TAG_HIDDEN (-2)

/* Callbacks. All but `put`, `get` and `fence` may be NULL. Called on any thread that is inside Strata. They may block,
 * but, except for `idle`, must not call back into the same context. Those that return int return STRATA_OK or a
 * negative status unless stated otherwise. */
typedef struct strata_host {
    size_t size;           /* sizeof(strata_host_t) */
    void *user;            /* first argument of every callback */
    int rank;              /* mine, 0..n_ranks-1 */
    int n_ranks;           /* size of the rank space: ranks are 0..n_ranks-1. It may be far larger than the number of
                            * processes (jobs that are spawned later take numbers above the first job's): a rank costs
                            * nothing without communication. `is_local` and `local_ranks` are then required */
    const char *job_id;    /* the same on all ranks, unique among jobs of this machine */
    const char *host_name; /* for messages; NULL: gethostname */

    /* Publishes `length` bytes under `key` for this rank; copies them. Others can read them afterwards, or after
     * `fence`. */
    int (*put)(void *user, const char *key, const void *blob, size_t length);
    /* Fetches the data that `rank` published: malloc'ed into *blob, freed by Strata; *length in bytes. Waits until the
     * rank has published the key, or has returned from strata_init without doing so: it then never will, and get
     * returns STRATA_ERR_NOT_FOUND. A `get` that does not wait makes a peer unreachable that is still in its
     * strata_init. Called by the first operation with a peer, never by strata_init. */
    int (*get)(void *user, int rank, const char *key, void **blob, size_t *length);
    /* Returns when all ranks have called it. Called on a thread of Strata's own, while the other callbacks may be
     * called by the thread that waits. */
    int (*fence)(void *user);
    /* Nonzero if `rank` runs on this machine. NULL: every rank does. */
    int (*is_local)(void *user, int rank);
    /* Ranks of this machine known at strata_init, ascending, *n of them, valid until finalize; others may come later,
     * known by is_local. NULL: derived lazily by is_local. */
    const int *(*local_ranks)(void *user, int *n);
    /* Name of the machine of `rank`, for messages; valid until the next call. */
    const char *(*host_of)(void *user, int rank);
    /* Ends the job; may return. */
    void (*abort)(void *user, int status, const char *reason);
    /* Takes log and error lines instead of stderr. Level 0 error, 1 warning, 2 info, 3 debug. */
    void (*log)(void *user, int level, const char *text);
    /* A peer has failed; called once per peer, outside every lock. */
    void (*peer_failed)(void *user, int rank, int rc, const char *reason);
    /* Makes progress on other work of the embedder. Called by Strata's blocking calls (strata_send, strata_recv, wait,
     * probe) every so often while they wait, with no lock held and no operation of the caller half done: unlike the
     * other callbacks it may call strata_progress on the same context and start operations. Returns how many events it
     * handled. Set: a blocking call never sleeps longer than 100 us between two calls of it. NULL: no other work. */
    int (*idle)(void *user);
    /* The embedder detects all events in this process that unmap, replace or discard memory: munmap, mremap, mmap with
     * MAP_FIXED, madvise with MADV_DONTNEED, MADV_FREE and MADV_REMOVE, shmdt, shmat with SHM_REMAP, and a lowered brk;
     * including the C library's own calls, as in free, and the loader's in dlclose. Called when Strata needs these
     * events. STRATA_OK: from the return until strata_finalize the embedder calls strata_host_memory_gone for each
     * event. Strata tests this, except for brk beside other threads. Any other value: Strata uses its own detection.
     * NULL: no detection by the embedder. */
    int (*memory_watch)(void *user);
} strata_host_t;

/* Called once when the operation is complete, outside every lock, never from inside the call that started the operation
 * unless the operation is complete when that call returns. May start operations, and may free or reuse the storage. */
typedef void (*strata_complete_fn)(void *arg, strata_request_t *req, const strata_status_t *status);

/* Bytes and alignment of a request, for an embedder whose own request struct contains ours. Constant for a
 * context. */
STRATA_API size_t strata_request_size(const strata_t *s);
/* Its alignment, a power of two. */
STRATA_API size_t strata_request_align(const strata_t *s);

/* Like strata_isend_data / strata_irecv_data / strata_imrecv_data, with the request placed in `storage`
 * (strata_request_size bytes, suitably aligned, untouched by the embedder until completion) and completion by
 * `fn`. Contiguous data passes as data->u.buffer. A send that completes at once returns 1 instead of STRATA_OK:
 * the storage was not used and `fn` is not called; `storage` may then even be NULL, in which case
 * STRATA_ERR_AGAIN says that it could not complete at once and nothing was sent. */
STRATA_API int strata_host_isend(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                                 void *storage, strata_complete_fn fn, void *arg);
/* See strata_host_isend; completion is always by `fn`. */
STRATA_API int strata_host_irecv(strata_comm_t *comm, const strata_data_t *data, int src, int tag, void *storage,
                                 strata_complete_fn fn, void *arg);
/* See strata_host_irecv; sets *msg to NULL. */
STRATA_API int strata_host_imrecv(strata_message_t **msg, const strata_data_t *data, void *storage,
                                  strata_complete_fn fn, void *arg);
/* strata_cancel for a request in the embedder's storage; `fn` reports the outcome. */
STRATA_API int strata_host_cancel(void *storage);

/* For an embedder that waits in a loop of its own around strata_progress: waits briefly after `empty` consecutive calls
 * without an event. Spins up to mca_base_spin, then yields the processor; never sleeps. Where more ranks than
 * processors share the machine and the last calls found that nobody else wants the processor, most calls pause. */
STRATA_API void strata_host_pause(const strata_t *s, unsigned empty);
/* The same for an embedder that was told to yield rather than to spin: gives the processor to others after each such
 * call, except, where more ranks than processors share the machine, when the last yields have shown that polling some
 * more costs less. `empty` is at least 1. */
STRATA_API void strata_host_yield(const strata_t *s, unsigned empty);

/* Tells Strata that [address, address + length) is about to be unmapped, replaced or discarded. The thread that does so
 * calls it before the event; see memory_watch. Applies to the whole process, not to one context. May be called at any
 * time, by any thread, inside malloc, free and signal handlers: takes no lock and allocates nothing. */
STRATA_API void strata_host_memory_gone(const void *address, size_t length);

/* strata_mem_alloc for an embedder's own allocator: the memory may hold old data, since some blocks freed by
 * strata_mem_free stay registered for the next call (mca_base_mem_spare). */
STRATA_API int strata_host_mem_alloc(strata_t *s, size_t len, void **memory);

/* Nonzero when memory of strata_mem_alloc is better for messages than malloc's: a transport in use registers memory, or
 * the user's list names a component of mpool. Otherwise it only costs more. */
STRATA_API int strata_host_memory_helps(const strata_t *s);

/* From now on, memory of strata_mem_alloc that was not freed stays mapped after strata_finalize, without registrations,
 * and belongs to the program: for an embedder whose programs read such memory after the end of messaging. */
STRATA_API void strata_host_keep_memory(strata_t *s);

/* Tells Strata that the embedder knows `rank` to be dead: its operations complete with STRATA_ERR_PEER. */
STRATA_API int strata_host_peer_failed(strata_t *s, int rank, const char *reason);

#ifdef __cplusplus
}
#endif
#endif

/* Contract of the rte framework: rank and peers; publish, look up, fence, abort.
 *
 * Exactly one rte component is selected per context. All ops are called with no Strata lock held that a peer's progress
 * could need. None may do work per peer at open: an open costs O(local ranks). */
#ifndef STRATA_SDK_RTE_H
#define STRATA_SDK_RTE_H

#include <pthread.h>
#include <strata/host.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_rte;

/* Operations of an rte. */
struct st_rte_ops {
    /* Publishes `length` bytes for this rank under `key` (at most 63 bytes; by convention the component's name); copies
     * them. A peer's get finds them after commit, at the latest. */
    int (*put)(struct st_rte *rte, const char *key, const void *blob, size_t length);
    /* Called once by the base after all components are open. May be NULL. */
    int (*commit)(struct st_rte *rte);
    /* Fetches the data that `rank` published under the key, malloc'ed. May block until the peer has reached commit, up
     * to rte_<name>_timeout seconds. STRATA_ERR_NOT_FOUND: the peer has committed without this key. Must be thread safe
     * at STRATA_THREAD_MULTIPLE. */
    int (*get)(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length);
    /* Barrier: returns when all ranks of the job have called it. The base calls it on a thread of its own while the
     * calling thread makes progress, so that get may run at the same time. */
    int (*fence)(struct st_rte *rte);
    /* The same without blocking, so that the caller can make progress: after STRATA_OK `done` is called once, on any
     * thread. It may be called before this returns, and after close, if a dead rank prevented the end of the fence and
     * the caller gave it up. NULL: this rte can only block. */
    int (*fence_begin)(struct st_rte *rte, void (*done)(void *arg, int rc), void *arg);
    /* Ends the job through the launcher; may return. */
    void (*abort)(struct st_rte *rte, int status, const char *reason);
    /* True if `rank` runs on this machine. At most O(log(local ranks)). */
    bool (*is_local)(struct st_rte *rte, int rank);
    /* Ranks on this machine, ascending, *n of them, including this one; valid until close. */
    const int *(*local_ranks)(struct st_rte *rte, int *n);
    /* Name of the machine of `rank` for messages, or "?"; valid until the next call. */
    const char *(*host_of)(struct st_rte *rte, int rank);
    /* Registers fn, which is called on any thread when a peer is known to be dead. NULL: the rte does not detect this.
     */
    void (*watch)(struct st_rte *rte, void (*fn)(void *arg, int rank, const char *reason), void *arg);
    /* Writes the latest failed calls of get for `rank`, with key and answer, for the message that no transport reaches
     * it: "get(rank 1, key \"btl_sm\") answered: ...; ...". An empty string: none. Thread safe. NULL: not recorded. */
    void (*get_failures)(struct st_rte *rte, int rank, char *text, size_t size);
    /* Leaves the job and frees rte. */
    void (*close)(struct st_rte *rte);
};

/* Embedded as the first member of the component's own struct. Filled by open, constant afterwards. */
struct st_rte {
    const struct st_rte_ops *ops; /* the component's */
    strata_t *context;            /* to which it belongs */
    int rank;                     /* of this process */
    int size;                     /* ranks in the job */
    const char *job_id;           /* unique among jobs of this machine */
    const char *host;             /* this machine */
};

/* What an rte component's `ops` points to. */
struct st_rte_component_ops {
    /* Joins the job. `host` is the embedder's table or NULL. STRATA_ERR_UNSUPPORTED with st_reject(): the process was
     * started in another way; this is an error only if the user named the component. Any other error (the launcher
     * exists but does not answer) must end strata_init: continuing with another rte would split the job. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                struct st_rte **out);
};

/* Common part of all rte components: first member of their structs. */
struct st_rte_common {
    struct st_rte head;   /* returned by open */
    pthread_mutex_t lock; /* for the component's use */
    char host[256];       /* name of this machine, or "localhost" where it has none */
};

/* For open: allocates `size` zeroed bytes that begin with a st_rte_common. Sets the lock, the host name, and ops,
 * context and host of the head. NULL: no memory. */
ST_API void *st_rte_make(size_t size, const struct st_rte_ops *ops, strata_t *context);
/* For close, and for an open that fails: frees it with its lock. */
ST_API void st_rte_free(struct st_rte_common *rte);

#ifdef __cplusplus
}
#endif
#endif

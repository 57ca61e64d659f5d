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

/* What an rte does. */
struct st_rte_ops {
    /* Publishes a blob for this rank under `key` (<= 63 bytes; a component's own name by custom). Visible to a
     * peer's get at the latest after commit. Copies. */
    int (*put)(struct st_rte *rte, const char *key, const void *blob, size_t length);
    /* Called once by the base after all components are open. May be NULL. */
    int (*commit)(struct st_rte *rte);
    /* Fetches what `rank` published, malloc'ed. May block for as long as the peer has not reached commit, up to
     * rte_<name>_timeout seconds. STRATA_ERR_NOT_FOUND: the peer is up and published no such key.
     * Must be thread safe under STRATA_THREAD_MULTIPLE. */
    int (*get)(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length);
    /* All ranks of the job arrive before any leaves. The base calls it on a thread of its own while the calling thread
     * makes progress, so that get may run at the same time. */
    int (*fence)(struct st_rte *rte);
    /* The same without blocking, so that the caller can keep its transports moving: after STRATA_OK `done` is called
     * once, on any thread, perhaps before this returns, perhaps after close: a fence that a dead rank keeps from ending
     * is given up. NULL: this rte can only block. */
    int (*fence_begin)(struct st_rte *rte, void (*done)(void *arg, int rc), void *arg);
    /* Ends the job through the launcher; may return. */
    void (*abort)(struct st_rte *rte, int status, const char *reason);
    /* True when `rank` runs on this machine. O(log local) at most. */
    bool (*is_local)(struct st_rte *rte, int rank);
    /* Ranks on this machine, ascending, *n of them, including this one; valid until close. */
    const int *(*local_ranks)(struct st_rte *rte, int *n);
    /* Name of the machine of `rank` for messages, or "?"; valid until the next call. */
    const char *(*host_of)(struct st_rte *rte, int rank);
    /* Registers fn to be told, on any thread, that a peer is known dead. NULL: the rte cannot tell. */
    void (*watch)(struct st_rte *rte, void (*fn)(void *arg, int rank, const char *reason), void *arg);
    /* Writes which of the latest calls of get about `rank` failed, with key and answer, for the message that no
     * transport reaches it: "get(rank 1, key \"btl_sm\") answered: ...; ...". An empty string: none. Thread safe. NULL:
     * this rte does not keep them. */
    void (*get_failures)(struct st_rte *rte, int rank, char *text, size_t size);
    /* Leaves the job and frees rte. */
    void (*close)(struct st_rte *rte);
};

/* Embedded as the first member of the component's own struct. Filled by open, constant afterwards. */
struct st_rte {
    const struct st_rte_ops *ops; /* the component's */
    strata_t *context;            /* that it belongs to */
    int rank;                     /* mine */
    int size;                     /* ranks in the job */
    const char *job_id;           /* unique among jobs of this machine */
    const char *host;             /* this machine */
};

/* What an rte component's `ops` points to. */
struct st_rte_component_ops {
    /* Joins the job. `host` is the embedder's table or NULL. STRATA_ERR_UNSUPPORTED with st_reject() when this is
     * not how the process was started: not an error unless asked for by name. Any other error (the launcher is there
     * but does not answer) must end strata_init: going on with another rte would split the job. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                struct st_rte **out);
};

/* What every rte component has besides its own: first member of its struct. */
struct st_rte_common {
    struct st_rte head;   /* that open hands out */
    pthread_mutex_t lock; /* for the component's use */
    char host[256];       /* name of this machine, or "localhost" where it has none */
};

/* For open: `size` bytes of zeros that begin with a st_rte_common. The lock is made, the name is there, and of the head
 * ops, context and host are set. NULL: no memory. */
ST_API void *st_rte_make(size_t size, const struct st_rte_ops *ops, strata_t *context);
/* For close, and for an open that fails: frees it with its lock. */
ST_API void st_rte_free(struct st_rte_common *rte);

#ifdef __cplusplus
}
#endif
#endif

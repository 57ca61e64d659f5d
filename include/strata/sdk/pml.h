/* Contract of the pml framework: message semantics. One PML per context; the public API is a thin veneer over it.
 *
 * The base checks arguments (ranks, tags, data) and serves STRATA_PROC_NULL before it calls an op. The PML is a client
 * of the worker (worker.h), whose lock it takes itself: at STRATA_THREAD_MULTIPLE ops may be called by any thread at
 * any time. Completion callbacks are called outside every lock. */
#ifndef STRATA_SDK_PML_H
#define STRATA_SDK_PML_H

#include <strata/host.h>
#include <strata/sdk/atomic.h>
#include <strata/sdk/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_pml;

/* Messages of the program to and from one peer, in all matching contexts. A message counts with the whole length of its
 * data as soon as its place in the order of messages is fixed. */
struct st_pml_traffic {
    uint64_t messages_sent;              /* modulo 2^32 in each matching context */
    uint64_t bytes_sent;                 /* data of these messages */
    uint64_t messages_received;          /* including unexpected ones; modulo like messages_sent */
    uint64_t bytes_received;             /* data of these messages */
    const struct st_component *heard_by; /* transport of the peer's first message, or NULL */
};

/* Head of every matching context; the PML's own struct follows it (st_pml_ops.comm_size bytes in all). */
struct strata_comm {
    const struct st_pml_ops *ops; /* of the PML, for one load less on the path */
    struct st_pml *pml;           /* the PML */
    struct st_worker *worker;     /* the PML's, for one load less */
    void *user;                   /* the embedder's pointer */
    uint32_t id;                  /* the same on all members; travels with each message */
    int rank;                     /* mine */
    int size;                     /* members */
    int *world;                   /* job rank of each member, or NULL for identity */
    int tag_min;                  /* lowest tag: 0, or INT_MIN where an embedder has hidden tags */
    bool inter;                   /* size and world are the other group's; rank is mine in my own */
};

/* States of a request; a nonpersistent one is active, then complete. */
enum st_req_state { ST_REQ_INACTIVE = 0, ST_REQ_ACTIVE = 1, ST_REQ_COMPLETE = 2 };
enum {
    ST_REQ_PERSISTENT = 1u << 0,
    ST_REQ_FOREIGN = 1u << 1, /* storage is the embedder's: never freed by us */
    ST_REQ_FREED = 1u << 2,   /* freed by the user; freed by the PML on completion */
    ST_REQ_STATIC = 1u << 3,  /* shared and always complete, for sends that finish at once; never freed or written */
    ST_REQ_NULL = 1u << 4     /* to or from STRATA_PROC_NULL: the veneer's own, a PML never sees it */
};

/* Head of every request. `state` is the completion flag: stored with release after `status`, read with acquire. */
struct strata_request {
    ST_ATOMIC(uint8_t) state; /* enum st_req_state */
    uint8_t flags;            /* ST_REQ_* */
    uint8_t kind;             /* the PML's */
    uint8_t end_bits;         /* the PML's: tasks at completion besides storing `state`; 0: none */
    strata_comm_t *comm;      /* its communicator */
    strata_status_t status;   /* valid once complete */
    strata_complete_fn fn;    /* or NULL */
    void *arg;                /* first argument of fn */
};

/* Head of every message that a matched probe removed from matching. */
struct strata_message {
    strata_comm_t *comm; /* that it arrived on */
};

/* Arguments of a send. */
struct st_pml_send {
    const void *buf;           /* contiguous data when data == NULL */
    size_t len;                /* bytes at buf */
    const strata_data_t *data; /* any kind of data, or NULL */
    int dst;                   /* rank in comm */
    int tag;                   /* 0..STRATA_TAG_MAX, or hidden */
    strata_mode_t mode;        /* of the send */
    void *storage;             /* request storage of an embedder or NULL */
    strata_complete_fn fn;     /* called on completion, or NULL */
    void *arg;                 /* first argument of fn */
};

/* Arguments of a receive. */
struct st_pml_recv {
    void *buf;                 /* contiguous room when data == NULL */
    size_t len;                /* bytes at buf */
    const strata_data_t *data; /* any kind of data, or NULL */
    int src;                   /* rank in comm or STRATA_ANY_SOURCE */
    int tag;                   /* or STRATA_ANY_TAG */
    void *storage;             /* request storage of an embedder or NULL */
    strata_complete_fn fn;     /* called on completion, or NULL */
    void *arg;                 /* first argument of fn */
};

/* Operations of a PML. */
struct st_pml_ops {
    size_t comm_size;     /* bytes of the PML's comm struct, strata_comm included */
    size_t request_size;  /* bytes of the largest request */
    size_t request_align; /* of its storage, a power of two */

    /* Adds a matching context: called after the head has been filled in, before the context is used. */
    int (*comm_add)(strata_comm_t *comm);
    /* Removes a matching context: called before the head is freed; no operation is pending. */
    void (*comm_del)(strata_comm_t *comm);

    /* Blocking, contiguous: the hot paths. */
    int (*send)(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode);
    /* Blocking receive; returns the status' error. */
    int (*recv)(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);

    /* Returns STRATA_OK and *req, which may be the static complete request. req == NULL marks an embedder's call
     * (isend, irecv, imrecv): the request is a->storage, and isend returns 1 or STRATA_ERR_AGAIN as strata_host_isend
     * does. */
    int (*isend)(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
    /* Always returns a request unless it fails. */
    int (*irecv)(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
    /* Makes an inactive persistent send. */
    int (*send_init)(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
    /* Makes an inactive persistent receive. */
    int (*recv_init)(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
    /* Starts a persistent request. */
    int (*start)(strata_request_t *req);
    /* As strata_cancel. */
    int (*cancel)(strata_request_t *req);
    /* The user frees a request, in any state. */
    void (*request_free)(strata_request_t *req);

    /* msg == NULL: as strata_iprobe; else as strata_improbe. */
    int (*iprobe)(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg, strata_status_t *status);
    /* Receives the message that improbe removed; frees msg. */
    int (*imrecv)(strata_message_t *msg, const struct st_pml_recv *a, strata_request_t **req);

    /* Adds the PML's part (thresholds, protocols) to a peer report as a malloc'ed JSON object; may be NULL. Called,
     * like mem_report, with the lock held. */
    char *(*describe)(struct st_pml *pml, int rank);
    /* Returns the traffic between this rank and the peer; false: no contact. Makes no connection. With the lock held.
     * May be NULL. */
    bool (*traffic)(struct st_pml *pml, int rank, struct st_pml_traffic *out);
    /* Reports the memory of requests, matching and unexpected messages. */
    void (*mem_report)(struct st_pml *pml, st_mem_line_fn line, void *arg);
    /* As strata_comm_queues; called with the lock held. May be NULL. */
    void (*queues)(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted);
    /* Revokes the tags below `below`, which is negative, in this context after the failure of a member. Unmatched
     * receives with such tags end with STRATA_ERR_CANCELLED. Messages with such tags, present or later, also after
     * comm_del, are discarded, and their sends complete. Receives posted later are not affected: their owner cancels
     * them. With the lock held. NULL: the context supports no collectives. */
    void (*revoke)(strata_comm_t *comm, int below);
    /* Leaves the worker, which has been drained, and frees the PML. */
    void (*close)(struct st_pml *pml);
};

/* First member of a PML's own struct. */
struct st_pml {
    const struct st_pml_ops *ops; /* the component's */
    strata_t *context;            /* to which it belongs */
    struct st_worker *worker;     /* of that context */
};

/* Buffered mode, for PMLs. Copies a message into the buffer that the program has attached to the context; *block
 * identifies the copy, *copy points to its bytes. With the worker's lock held. STRATA_ERR_BUFFER: no buffer, or no room
 * now. */
ST_API int st_pml_buffer_copy(strata_t *s, const strata_data_t *data, void **block, void **copy);
/* Frees a copy whose message was sent. With the worker's lock held. */
ST_API void st_pml_buffer_put(strata_t *s, void *block);

/* What a pml component's `ops` points to. */
struct st_pml_component_ops {
    /* Makes the PML, which joins the worker for ST_AM_PML. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_worker *worker,
                struct st_pml **out);
};

#ifdef __cplusplus
}
#endif

#endif

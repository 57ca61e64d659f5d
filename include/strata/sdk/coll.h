/* Contract of the coll framework: collective operations over a communicator. Each component that opens has one module
 * per context; the first module in priority that supports an operation starts it. */
#ifndef STRATA_SDK_COLL_H
#define STRATA_SDK_COLL_H

#include <strata/coll.h>
#include <strata/sdk/pml.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_coll;

/* Head of a request; the component's own struct follows it. `error` and `failed` are written before `done`. */
struct strata_coll_request {
    ST_ATOMIC(bool) done;                          /* stored with release, read with acquire */
    int error;                                     /* STRATA_OK, STRATA_ERR_PEER, ... */
    int failed;                                    /* rank in the communicator of the member that failed, or -1 */
    struct st_worker *worker;                      /* the communicator's */
    void (*free)(struct strata_coll_request *req); /* gives up a complete request */
};

/* Tags of messages of collectives: so many from INT_MIN on, below those of programs and of embedders. */
#define ST_COLL_TAGS (1 << 24)

/* A communicator as the framework keeps it, from its first collective on. Members have numbers: their ranks, and on an
 * intercommunicator own rank i has the number comm->size + i. */
struct st_coll_group {
    strata_comm_t *comm;   /* whose it is */
    const int *local;      /* job ranks of the own group of an intercommunicator, else NULL */
    int n_local;           /* how many; else 0 */
    ST_ATOMIC(int) failed; /* number of the member that failed first, as far as this process knows; -1: none. Final */
};

/* Job rank of a member. */
static inline int st_coll_job_rank(const struct st_coll_group *group, int number)
{
    const strata_comm_t *comm = group->comm;
    if (number >= comm->size)
        return group->local[number - comm->size];
    return comm->world ? comm->world[number] : number;
}

/* Own number. */
static inline int st_coll_self(const struct st_coll_group *group)
{
    return group->n_local ? group->comm->size + group->comm->rank : group->comm->rank;
}

/* First member of a component's data for a communicator. */
struct st_coll_slot {
    struct st_coll *coll;        /* the module */
    struct st_coll_group *group; /* the communicator */
};

/* Operations of a module. Each op states whether it may be NULL. */
struct st_coll_ops {
    bool inter; /* supports intercommunicators; otherwise the module gets no slots of them */
    /* Makes the slot of a communicator, at its first collective. Local; with the worker's lock held. */
    int (*attach)(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out);
    /* Frees a slot; no request of it is left. Without the lock. */
    void (*detach)(struct st_coll_slot *slot);
    /* A communicator with that id has been created here; its slot is made at its first collective. The id may be that
     * of an earlier communicator, which all members have freed. With the worker's lock held. May be NULL. */
    void (*created)(struct st_coll *coll, uint32_t comm);
    /* A communicator has been freed here, also if it never had a slot: the module drops messages that it keeps for the
     * communicator. With the worker's lock held. May be NULL. */
    void (*freed)(struct st_coll *coll, uint32_t comm);
    /* Starts a collective whose arguments have been checked. Any thread, without the lock. STRATA_ERR_UNSUPPORTED: the
     * next component in priority starts it; this must depend only on properties that are the same at all members. In a
     * group that has failed, start returns a request that ends with STRATA_ERR_PEER. */
    int (*start)(struct st_coll_slot *slot, const strata_coll_t *c, strata_coll_request_t **out);
    /* group->failed has been set, and the tags of collectives are revoked. Pending operations end with STRATA_ERR_PEER
     * as soon as none of their transfers is in flight. With the lock held. May be NULL. */
    void (*failed)(struct st_coll_slot *slot);
    /* An active message of ST_AM_COLL that begins with a byte >= ST_COLL_OWN. As st_client.deliver. May be NULL. */
    void (*deliver)(struct st_coll *coll, const struct st_frag *frag);
    /* As st_client.notified. May be NULL. */
    void (*notified)(struct st_coll *coll, int rank, uint32_t notice);
    /* As st_client.attend, while st_coll_attend requests it. May be NULL. */
    int (*attend)(struct st_coll *coll);
    /* As st_client.outside, after each st_worker_news. May be NULL. */
    void (*outside)(struct st_coll *coll);
    /* As st_client.peer_changed; also after peer->failed was set. May be NULL. */
    void (*peer_changed)(struct st_coll *coll, struct st_peer *peer);
    /* Memory of requests, slots and buffers. With the lock held. May be NULL. */
    void (*mem_report)(struct st_coll *coll, st_mem_line_fn line, void *arg);
    /* Every slot has been detached. */
    void (*close)(struct st_coll *coll);
};

/* First byte of a component's active messages, at least; lower ones are the framework's. */
#define ST_COLL_OWN 16u

/* First member of a module's own struct. */
struct st_coll {
    const struct st_coll_ops *ops; /* the component's */
    strata_t *context;             /* to which it belongs */
    bool asks;                     /* st_coll_attend */
};

/* Reports that a member of the group (its number) has failed: collectives of the group end here and, by a message to
 * each member with contact, there. Only the first member that fails is recorded. Without the lock. */
ST_API void st_coll_member_failed(struct st_coll_group *group, int rank);
/* The same with the lock. */
ST_API void st_coll_member_failed_locked(struct st_coll_group *group, int rank);

/* Sets whether the module's `attend` is called in each round of progress from now on; no thread then sleeps for long.
 * With the lock held. */
ST_API void st_coll_attend(struct st_coll *coll, bool asks);

/* Starts a collective in the components of lower priority than the slot's own, in the communicator's order: as if the
 * component's start had returned STRATA_ERR_UNSUPPORTED, but the request belongs to the component. Without the lock. */
ST_API int st_coll_start_below(struct st_coll_slot *slot, const strata_coll_t *c, strata_coll_request_t **out);

/* The table that a coll component's `ops` points to. */
struct st_coll_component_ops {
    /* Makes the module: at the first collective started here, or at the first message of ST_AM_COLL, with the worker's
     * lock held. The framework is the worker's client for ST_AM_COLL. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_worker *worker,
                struct st_coll **out);
};

#ifdef __cplusplus
}
#endif
#endif

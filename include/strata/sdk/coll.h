/* Contract of the coll framework: collective operations over a communicator. One module per context. */
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

/* First member of what a component keeps for a communicator. */
struct st_coll_slot {
    struct st_coll *coll; /* whose it is */
};

/* Operations of a module. Any thread may call. */
struct st_coll_ops {
    /* Makes the slot of a communicator: at its first collective. Local. */
    int (*attach)(struct st_coll *coll, strata_comm_t *comm, struct st_coll_slot **out);
    /* Frees a slot; no request of it is left. */
    void (*detach)(struct st_coll_slot *slot);
    /* Starts a collective whose arguments have been checked. */
    int (*start)(struct st_coll_slot *slot, strata_comm_t *comm, const strata_coll_t *c, strata_coll_request_t **out);
    /* Every slot has been detached. */
    void (*close)(struct st_coll *coll);
};

/* First member of a module's own struct. */
struct st_coll {
    const struct st_coll_ops *ops; /* the component's */
    strata_t *context;             /* that it belongs to */
};

/* The table that a coll component's `ops` points to. */
struct st_coll_component_ops {
    /* Makes the module. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_coll **out);
};

#ifdef __cplusplus
}
#endif
#endif

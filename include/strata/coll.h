/* Collective operations over all members of a communicator. Guide: docs/collectives.md.
 *
 * Every member calls the same operations of a communicator in the same order with matching arguments, as in MPI-3.1,
 * chapter 5. Messages of collectives never match the program's own. Any number of nonblocking operations may be pending
 * on one communicator.
 *
 * On an intercommunicator (MPI-3.1, section 5.2.2) one group's input is the other group's result. Blocks that are
 * received are counted by the members of the other group (strata_comm_size), blocks of reduce_scatter_block by those of
 * the own group. STRATA_IN_PLACE is STRATA_ERR_ARG there, as is a reduce_scatter_block whose elements do not divide by
 * the other group's members; a scan, or a spec without n_local, is STRATA_ERR_UNSUPPORTED. */
#ifndef STRATA_COLL_H
#define STRATA_COLL_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Passed as `send`: the input is in `recv`, where the result goes (MPI-3.1, section 5.2.1). In a gather only the root
 * may pass it. In a scatter the root may pass it as `recv`: its block stays in `send`. */
#define STRATA_IN_PLACE ((const void *)-1)

/* Roots on an intercommunicator. All members of the root's group pass STRATA_ROOT or STRATA_PROC_NULL, members of the
 * other group the root's rank. */
#define STRATA_ROOT (-4) /* the caller is the root; the rest of its group passes STRATA_PROC_NULL */

/* The operation. "Block": `count` elements. */
typedef enum strata_coll_kind {
    STRATA_BARRIER,              /* no member returns before all have called */
    STRATA_BCAST,                /* a block at `recv` of the root goes to all */
    STRATA_REDUCE,               /* the root gets the combination of all blocks */
    STRATA_ALLREDUCE,            /* all get the combination of all blocks */
    STRATA_GATHER,               /* the root gets all blocks, in the order of ranks */
    STRATA_SCATTER,              /* rank i gets block i of the root */
    STRATA_ALLGATHER,            /* all get all blocks, in the order of ranks */
    STRATA_ALLGATHERV,           /* the same with blocks of recv_counts[] elements at recv_offsets[] */
    STRATA_ALLTOALL,             /* block i goes to rank i, where it is the block of the sender's rank */
    STRATA_ALLTOALLV,            /* the same with counts and offsets for each rank */
    STRATA_REDUCE_SCATTER_BLOCK, /* size blocks are combined, rank i gets block i */
    STRATA_SCAN,                 /* rank i gets the combination of the blocks of ranks 0 to i */
    STRATA_COLL_KINDS            /* how many there are */
} strata_coll_kind_t;

/* inout[i] = in[i] combined with inout[i], `in` being of lower ranks, for `count` elements. Associative. Called by any
 * thread that makes progress; must not call into Strata. */
typedef void (*strata_reduce_fn)(void *arg, const void *in, void *inout, size_t count);

/* A collective operation. Start from STRATA_COLL_INIT; members that a kind does not use are ignored. Arrays of counts
 * and offsets are in elements and have one entry for each rank; only the call that starts the operation reads them.
 * `send` and `recv` have `count` elements for a block, and one block for each rank where an operation has several. */
typedef struct strata_coll {
    size_t size;                /* sizeof(strata_coll_t) */
    strata_coll_kind_t kind;    /* the operation */
    const void *send;           /* input, or STRATA_IN_PLACE */
    void *recv;                 /* result */
    size_t count;               /* elements of a block */
    size_t element;             /* bytes of an element */
    int root;                   /* of bcast, reduce, gather, scatter */
    const size_t *send_counts;  /* alltoallv */
    const size_t *send_offsets; /* alltoallv */
    const size_t *recv_counts;  /* allgatherv, alltoallv; one's own block of an allgatherv between groups has `count` */
    const size_t *recv_offsets; /* allgatherv, alltoallv */
    strata_reduce_fn reduce;    /* reductions */
    void *reduce_arg;           /* first argument of reduce */
    int not_commutative;        /* nonzero: operands are combined in the order of ranks */
} strata_coll_t;
/* Initialiser of a strata_coll_t of a kind. */
#define STRATA_COLL_INIT(kind)                                                                                         \
    {                                                                                                                  \
        sizeof(strata_coll_t), (kind), NULL, NULL, 0, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0                      \
    }

typedef struct strata_coll_request strata_coll_request_t; /* a pending collective */

/* Starts a collective; its buffers belong to the operation until completion, *c does not. Progress of the context
 * advances it. After an error nothing was sent: STRATA_ERR_ARG (also lengths that overflow), STRATA_ERR_RANK (root),
 * STRATA_ERR_NOT_FOUND (no component of the framework coll), STRATA_ERR_UNSUPPORTED (intercommunicators),
 * STRATA_ERR_NOMEM. */
STRATA_API int strata_coll_start(strata_comm_t *comm, const strata_coll_t *c, strata_coll_request_t **req);
/* Waits until the collective is complete, frees it and sets *req to NULL. STRATA_ERR_PEER: a member failed, and the
 * result is undefined; *failed (may be NULL) is its rank in the communicator, else -1. On an intercommunicator the
 * ranks of the own group follow those of the other one: own rank i is strata_comm_size + i. Every later collective of
 * this communicator ends in the same way; the survivors must create another communicator. */
STRATA_API int strata_coll_wait(strata_coll_request_t **req, int *failed);
/* Makes progress once. *done is nonzero if the collective is complete (then as strata_coll_wait). */
STRATA_API int strata_coll_test(strata_coll_request_t **req, int *done, int *failed);
/* Nonzero if the collective is complete, or `req` is NULL. Makes no progress. */
STRATA_API int strata_coll_done(const strata_coll_request_t *req);
/* For n collectives on any communicators of one context; NULL entries are ignored. waitall and testall return the first
 * error in the order of the array, and its failed rank; testall frees none unless all are complete (*done). waitany and
 * testany return the status of one complete collective and its *index, and set its entry to NULL; *index is -1 if all
 * entries were NULL. */
STRATA_API int strata_coll_waitall(size_t n, strata_coll_request_t *reqs[], int *failed);
/* Makes progress once. */
STRATA_API int strata_coll_testall(size_t n, strata_coll_request_t *reqs[], int *done, int *failed);
/* Waits until one is complete. */
STRATA_API int strata_coll_waitany(size_t n, strata_coll_request_t *reqs[], int *index, int *failed);
/* Makes progress once. */
STRATA_API int strata_coll_testany(size_t n, strata_coll_request_t *reqs[], int *index, int *done, int *failed);
/* Starts a collective and waits for it. */
STRATA_API int strata_coll(strata_comm_t *comm, const strata_coll_t *c);

#ifdef __cplusplus
}
#endif
#endif

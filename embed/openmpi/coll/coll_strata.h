/* Private to mca_coll_strata: collectives where the pml is strata, of communicators whose members share a machine, and
 * alltoall(v) and allgather(v) of others; of these, the operations that a parameter names. */
#ifndef COLL_STRATA_H
#define COLL_STRATA_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"

#include <pthread.h>
#include <stdatomic.h>
#include <strata/coll.h>

/* Operations of the parameter coll_strata_operations. */
enum coll_strata_operation {
    COLL_STRATA_BARRIER,
    COLL_STRATA_BCAST,
    COLL_STRATA_REDUCE,
    COLL_STRATA_ALLREDUCE,
    COLL_STRATA_ALLGATHER,
    COLL_STRATA_ALLTOALL,
    COLL_STRATA_OPERATIONS
};

/* Open MPI gives a component no context: one state per process. */
struct coll_strata_call;
struct coll_strata {
    int priority;           /* of the parameter */
    int most, most_between; /* members, of one machine and of several */
    const char *list;       /* operations, of the parameter */
    int operations;         /* the same: a bit each */
    int between;            /* of tests: all communicators count as of several machines */
    pthread_mutex_t lock;
    struct coll_strata_call *under_way; /* nonblocking ones */
    atomic_int n_under_way;
    bool registered; /* in Open MPI's progress loop, at the first nonblocking one */
};
extern struct coll_strata coll_strata;

static inline bool coll_strata_does(enum coll_strata_operation operation)
{
    return coll_strata.operations & 1 << operation;
}
/* Offers PREFIX_NAME and its nonblocking form, PREFIX_iNAME, if the operation is done here. */
#define COLL_STRATA_OFFER(to, operation, prefix, name)                                                                 \
    do {                                                                                                               \
        if (coll_strata_does(operation)) {                                                                             \
            (to)->coll_##name = prefix##_##name;                                                                       \
            (to)->coll_i##name = prefix##_i##name;                                                                     \
        }                                                                                                              \
    } while (0)

/* A communicator's module. What is not done here is done by what was selected before. */
struct coll_strata_module {
    mca_coll_base_module_t super;
    mca_coll_base_module_t *reduce_module, *allreduce_module, *ireduce_module, *iallreduce_module;
    mca_coll_base_module_reduce_fn_t reduce;
    mca_coll_base_module_allreduce_fn_t allreduce;
    mca_coll_base_module_ireduce_fn_t ireduce;
    mca_coll_base_module_iallreduce_fn_t iallreduce;
};
typedef struct coll_strata_module coll_strata_module_t;
OBJ_CLASS_DECLARATION(coll_strata_module_t);

/* module.c: the module for a communicator, or NULL: others are better there. */
mca_coll_base_module_t *coll_strata_query(struct ompi_communicator_t *comm, int *priority);

/* A message's data as one block: where it lies, if it is one, else a block of memory that it is packed into. */
struct coll_strata_data {
    char *block;
    size_t bytes; /* packed, of all */
    char *packed; /* malloc'ed, or NULL */
    void *user;   /* the user's buffer, count and datatype */
    size_t count;
    struct ompi_datatype_t *datatype;
    const int *counts, *displs; /* the user's, of blocks that differ by rank (coll_vector.c); else NULL */
    int n_parts;                /* of them */
};

/* Blocks of all members as the user describes them. */
struct coll_strata_vector {
    const void *buf;
    const int *counts, *displs;
    struct ompi_datatype_t *datatype;
};

/* data.c: describes count elements at `buf`; packs them where `filled` and they have gaps. OMPI_SUCCESS, or an error.
 */
int coll_strata_data_open(struct coll_strata_data *d, const void *buf, size_t count, struct ompi_datatype_t *datatype,
                          bool filled);
/* Packs, or unpacks, d->count elements at d->user to d->packed, of d->bytes. */
int coll_strata_data_move(const struct coll_strata_data *d, bool pack);
/* The same of blocks that differ by rank. */
int coll_strata_vector_move(const struct coll_strata_data *d, bool pack);
/* Unpacks what has come, if `received`, and frees the block. */
int coll_strata_data_close(struct coll_strata_data *d, bool received);
/* A collective with what it needs until its end. */
struct coll_strata_call {
    strata_coll_t c;
    struct coll_strata_data in, out;
    size_t *lists;        /* counts and offsets of blocks that differ by rank, malloc'ed, or NULL */
    bool received;        /* `out` is to be unpacked */
    struct ompi_op_t *op; /* of a reduction of `datatype` */
    struct ompi_datatype_t *datatype;
    /* coll_request.c: of a nonblocking one */
    struct coll_strata_call *next;
    struct ompi_communicator_t *comm;
    ompi_request_t *ompi;
    strata_coll_request_t *req;
};

/* coll_call.c: begin a call, and describe its data. */
int coll_strata_call_bcast(struct coll_strata_call *call, void *buf, int count, struct ompi_datatype_t *datatype,
                           int root, struct ompi_communicator_t *comm);
/* Blocks of all members are received, of one member (allgather) or of all that are sent. */
int coll_strata_call_exchange(struct coll_strata_call *call, strata_coll_kind_t kind, const void *sbuf, size_t scount,
                              struct ompi_datatype_t *sdtype, void *rbuf, size_t rcount, struct ompi_datatype_t *rdtype,
                              struct ompi_communicator_t *comm);
int coll_strata_call_reduction(struct coll_strata_call *call, strata_coll_kind_t kind, const void *sbuf, void *rbuf,
                               int count, struct ompi_datatype_t *datatype, struct ompi_op_t *op, int root);
/* coll_vector.c: blocks that differ by rank; `out` goes, in place where its buf is MPI_IN_PLACE, `in` comes. */
int coll_strata_call_alltoallv(struct coll_strata_call *call, const struct coll_strata_vector *out,
                               const struct coll_strata_vector *in, struct ompi_communicator_t *comm);
int coll_strata_call_allgatherv(struct coll_strata_call *call, const void *sbuf, int scount,
                                struct ompi_datatype_t *sdtype, const struct coll_strata_vector *in,
                                struct ompi_communicator_t *comm);
/* Unpacks the result if rc is OMPI_SUCCESS, and frees the blocks; returns rc or what unpacking failed with. */
int coll_strata_call_end(struct coll_strata_call *call, int rc);
/* An error of Open MPI. */
int coll_strata_error(int rc);

/* coll_module.c: a blocking call that was described with `rc`. */
int coll_strata_run(struct coll_strata_call *call, int rc, struct ompi_communicator_t *comm);
/* coll_vector_module.c: alltoallv and allgatherv, blocking or not. */
void coll_strata_offer_vectors(mca_coll_base_module_t *module);

/* coll_request.c: starts `call`, which was malloc'ed and described with `rc`, or frees it. */
int coll_strata_start(struct coll_strata_call *call, int rc, struct ompi_communicator_t *comm,
                      ompi_request_t **request);

/* Whether elements lie one behind the other without gaps, the first where the buffer begins. */
bool coll_strata_plain(const struct ompi_datatype_t *datatype);

#endif

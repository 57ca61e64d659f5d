/* Matching contexts: making and freeing. */
#ifndef ST_PML_COMM_H
#define ST_PML_COMM_H

#include <strata/sdk/pml.h>

struct st_coll_group;
/* The part that the base keeps behind the PML's struct, so that the head stays within a cache line. */
struct st_comm_tail {
    ST_ATOMIC(struct st_coll_group *) coll; /* framework/coll: of its collectives, or NULL before the first */
    int *local;                             /* job ranks of the own group of an intercommunicator, or NULL */
    int n_local;                            /* how many */
};

/* Bytes from a communicator to its tail. */
static inline size_t st_comm_tail_at(const struct st_pml_ops *ops)
{
    return (ops->comm_size + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
}

static inline struct st_comm_tail *st_comm_tail(strata_comm_t *comm)
{
    return (struct st_comm_tail *)(void *)((char *)comm + st_comm_tail_at(comm->ops));
}

/* Makes a communicator of a checked spec; the world too. */
int st_comm_make(strata_t *s, const strata_comm_spec_t *spec, strata_comm_t **out);
void st_comm_destroy(strata_comm_t *comm);

#endif

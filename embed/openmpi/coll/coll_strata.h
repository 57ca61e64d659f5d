/* Private to mca_coll_strata: collectives of communicators whose members share a machine, where the pml is strata. */
#ifndef COLL_STRATA_H
#define COLL_STRATA_H

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"

#include <strata/coll.h>

/* Open MPI gives a component no context: one state per process. */
struct coll_strata {
    int priority; /* of the parameter */
    int most;     /* members */
};
extern struct coll_strata coll_strata;

/* A communicator's module. What is not done here is done by what was selected before. */
struct coll_strata_module {
    mca_coll_base_module_t super;
    mca_coll_base_module_t *reduce_module, *allreduce_module;
    mca_coll_base_module_reduce_fn_t reduce;
    mca_coll_base_module_allreduce_fn_t allreduce;
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
};

/* data.c: describes count elements at `buf`; packs them where `filled` and they have gaps. OMPI_SUCCESS, or an error.
 */
int coll_strata_data_open(struct coll_strata_data *d, const void *buf, size_t count, struct ompi_datatype_t *datatype,
                          bool filled);
/* Unpacks what has come, if `received`, and frees the block. */
int coll_strata_data_close(struct coll_strata_data *d, bool received);
/* Whether elements lie one behind the other without gaps, the first where the buffer begins. */
bool coll_strata_plain(const struct ompi_datatype_t *datatype);

#endif

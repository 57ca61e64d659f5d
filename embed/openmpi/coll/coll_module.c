/* The module of a communicator: its operations, each by strata_coll. */
#include "coll_strata.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/proc/proc.h"
#include "opal/util/output.h"

int coll_strata_run(struct coll_strata_call *call, int rc, struct ompi_communicator_t *comm)
{
    if (rc == OMPI_SUCCESS)
        rc = coll_strata_error(strata_coll((strata_comm_t *)(void *)comm->c_pml_comm, &call->c));
    return coll_strata_call_end(call, rc);
}

/* Datatype and operation are the same at all members (MPI-3.1, section 5.9.1): so is this. MPI's calls about operations
 * do not work within MPI_Init, where all members of a communicator are at the same time. */
static bool module_reduces(const struct ompi_datatype_t *datatype)
{
    int ready = 0;
    return coll_strata_plain(datatype) && datatype->super.size > 0 && PMPI_Initialized(&ready) == MPI_SUCCESS && ready;
}

/* ---- blocking ---- */

static int module_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_strata_call call = {.c = STRATA_COLL_INIT(STRATA_BARRIER)};
    (void)module;
    return coll_strata_run(&call, OMPI_SUCCESS, comm);
}

static int module_bcast(void *buf, int count, struct ompi_datatype_t *datatype, int root,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_strata_call call;
    (void)module;
    return coll_strata_run(&call, coll_strata_call_bcast(&call, buf, count, datatype, root, comm), comm);
}

static int module_allgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                            struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                            mca_coll_base_module_t *module)
{
    struct coll_strata_call call;
    (void)module;
    int rc = coll_strata_call_exchange(&call, STRATA_ALLGATHER, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount,
                                       rdtype, comm);
    return coll_strata_run(&call, rc, comm);
}

static int module_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                           struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                           mca_coll_base_module_t *module)
{
    struct coll_strata_call call;
    (void)module;
    int rc = coll_strata_call_exchange(&call, STRATA_ALLTOALL, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount,
                                       rdtype, comm);
    return coll_strata_run(&call, rc, comm);
}

static int module_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *datatype,
                            struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    struct coll_strata_call call;
    if (!module_reduces(datatype))
        return m->allreduce(sbuf, rbuf, count, datatype, op, comm, m->allreduce_module);
    return coll_strata_run(
        &call, coll_strata_call_reduction(&call, STRATA_ALLREDUCE, sbuf, rbuf, count, datatype, op, 0), comm);
}

static int module_reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *datatype,
                         struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                         mca_coll_base_module_t *module)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    struct coll_strata_call call;
    if (!module_reduces(datatype))
        return m->reduce(sbuf, rbuf, count, datatype, op, root, comm, m->reduce_module);
    return coll_strata_run(
        &call, coll_strata_call_reduction(&call, STRATA_REDUCE, sbuf, rbuf, count, datatype, op, root), comm);
}

/* ---- nonblocking ---- */

static int module_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module)
{
    struct coll_strata_call *call = calloc(1, sizeof(*call));
    (void)module;
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    call->c = (strata_coll_t)STRATA_COLL_INIT(STRATA_BARRIER);
    return coll_strata_start(call, OMPI_SUCCESS, comm, request);
}

static int module_ibcast(void *buf, int count, struct ompi_datatype_t *datatype, int root,
                         struct ompi_communicator_t *comm, ompi_request_t **request, mca_coll_base_module_t *module)
{
    struct coll_strata_call *call = malloc(sizeof(*call));
    (void)module;
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return coll_strata_start(call, coll_strata_call_bcast(call, buf, count, datatype, root, comm), comm, request);
}

static int module_iallgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                             struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm, ompi_request_t **request,
                             mca_coll_base_module_t *module)
{
    struct coll_strata_call *call = malloc(sizeof(*call));
    (void)module;
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = coll_strata_call_exchange(call, STRATA_ALLGATHER, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount,
                                       rdtype, comm);
    return coll_strata_start(call, rc, comm, request);
}

static int module_ialltoall(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                            struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm, ompi_request_t **request,
                            mca_coll_base_module_t *module)
{
    struct coll_strata_call *call = malloc(sizeof(*call));
    (void)module;
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = coll_strata_call_exchange(call, STRATA_ALLTOALL, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount,
                                       rdtype, comm);
    return coll_strata_start(call, rc, comm, request);
}

static int module_iallreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *datatype,
                             struct ompi_op_t *op, struct ompi_communicator_t *comm, ompi_request_t **request,
                             mca_coll_base_module_t *module)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    if (!module_reduces(datatype))
        return m->iallreduce(sbuf, rbuf, count, datatype, op, comm, request, m->iallreduce_module);
    struct coll_strata_call *call = malloc(sizeof(*call));
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = coll_strata_call_reduction(call, STRATA_ALLREDUCE, sbuf, rbuf, count, datatype, op, 0);
    return coll_strata_start(call, rc, comm, request);
}

static int module_ireduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *datatype,
                          struct ompi_op_t *op, int root, struct ompi_communicator_t *comm, ompi_request_t **request,
                          mca_coll_base_module_t *module)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    if (!module_reduces(datatype))
        return m->ireduce(sbuf, rbuf, count, datatype, op, root, comm, request, m->ireduce_module);
    struct coll_strata_call *call = malloc(sizeof(*call));
    if (!call)
        return OMPI_ERR_OUT_OF_RESOURCE;
    int rc = coll_strata_call_reduction(call, STRATA_REDUCE, sbuf, rbuf, count, datatype, op, root);
    return coll_strata_start(call, rc, comm, request);
}

/* ---- selection ---- */

static void module_construct(struct coll_strata_module *m)
{
    m->reduce_module = m->allreduce_module = m->ireduce_module = m->iallreduce_module = NULL;
}

/* What is selected so far stays for what is left to it. */
static int module_enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    m->reduce = comm->c_coll->coll_reduce;
    m->reduce_module = comm->c_coll->coll_reduce_module;
    m->allreduce = comm->c_coll->coll_allreduce;
    m->allreduce_module = comm->c_coll->coll_allreduce_module;
    m->ireduce = comm->c_coll->coll_ireduce;
    m->ireduce_module = comm->c_coll->coll_ireduce_module;
    m->iallreduce = comm->c_coll->coll_iallreduce;
    m->iallreduce_module = comm->c_coll->coll_iallreduce_module;
    bool there = m->reduce && m->allreduce && m->ireduce && m->iallreduce;
    if (!there) {
        module_construct(m);
        return OMPI_ERR_NOT_FOUND;
    }
    OBJ_RETAIN(m->reduce_module);
    OBJ_RETAIN(m->allreduce_module);
    OBJ_RETAIN(m->ireduce_module);
    OBJ_RETAIN(m->iallreduce_module);
    return OMPI_SUCCESS;
}

static void module_destruct(struct coll_strata_module *m)
{
    if (m->reduce_module)
        OBJ_RELEASE(m->reduce_module);
    if (m->allreduce_module)
        OBJ_RELEASE(m->allreduce_module);
    if (m->ireduce_module)
        OBJ_RELEASE(m->ireduce_module);
    if (m->iallreduce_module)
        OBJ_RELEASE(m->iallreduce_module);
}

OBJ_CLASS_INSTANCE(coll_strata_module_t, mca_coll_base_module_t, module_construct, module_destruct);

/* Open MPI knows the locality of its own job and of jobs that this process has met. These differ between the members of
 * a communicator of several jobs, which must all come to the same answer: of other jobs' processes the host decides
 * that the pml of each has published. */
static bool module_is_here(const ompi_proc_t *proc)
{
    static char key[] = "strata.host";
    opal_process_name_t name = proc->super.proc_name;
    uint8_t *host = NULL;
    int32_t length = 0;
    int rc;
    if (proc == ompi_proc_local() || OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags))
        return true;
    if (name.jobid == ompi_proc_local()->super.proc_name.jobid)
        return false;
    OPAL_MODEX_RECV_STRING(rc, key, &name, &host, &length);
    bool same = rc == OPAL_SUCCESS && host && (size_t)length == strlen(OPAL_PROC_MY_HOSTNAME) &&
                memcmp(host, OPAL_PROC_MY_HOSTNAME, (size_t)length) == 0;
    free(host);
    return same;
}

static bool module_is_local(struct ompi_communicator_t *comm)
{
    if (coll_strata.between)
        return false;
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        const ompi_proc_t *proc = ompi_comm_peer_lookup(comm, i);
        if (!proc || !module_is_here(proc))
            return false;
    }
    return true;
}

/* Operations in which blocks of all members meet each other. */
static void module_offer_exchanges(mca_coll_base_module_t *module)
{
    COLL_STRATA_OFFER(module, COLL_STRATA_ALLGATHER, module, allgather);
    COLL_STRATA_OFFER(module, COLL_STRATA_ALLTOALL, module, alltoall);
}

static void module_offer_rest(mca_coll_base_module_t *module)
{
    COLL_STRATA_OFFER(module, COLL_STRATA_BARRIER, module, barrier);
    COLL_STRATA_OFFER(module, COLL_STRATA_BCAST, module, bcast);
    COLL_STRATA_OFFER(module, COLL_STRATA_REDUCE, module, reduce);
    COLL_STRATA_OFFER(module, COLL_STRATA_ALLREDUCE, module, allreduce);
}

mca_coll_base_module_t *coll_strata_query(struct ompi_communicator_t *comm, int *priority)
{
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    *priority = coll_strata.priority;
    if (coll_strata.priority <= 0 || strcmp(pml, "strata") != 0 || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    if (ompi_comm_size(comm) > coll_strata.most && ompi_comm_size(comm) > coll_strata.most_between)
        return NULL; /* without a look at each member */
    bool local = module_is_local(comm);
    if (ompi_comm_size(comm) > (local ? coll_strata.most : coll_strata.most_between))
        return NULL;
    struct coll_strata_module *m = OBJ_NEW(coll_strata_module_t);
    if (!m)
        return NULL;
    m->super.coll_module_enable = module_enable;
    module_offer_exchanges(&m->super);
    coll_strata_offer_vectors(&m->super);
    if (local)
        module_offer_rest(&m->super);
    return &m->super;
}

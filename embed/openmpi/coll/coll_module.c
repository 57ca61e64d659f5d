/* The module of a communicator: its operations, each by strata_coll. */
#include "coll_strata.h"

#include <string.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/proc/proc.h"

static int module_run(struct ompi_communicator_t *comm, const strata_coll_t *c)
{
    strata_comm_t *made = (strata_comm_t *)(void *)comm->c_pml_comm;
    int rc = strata_coll(made, c);
    return rc == STRATA_OK ? OMPI_SUCCESS : rc == STRATA_ERR_NOMEM ? OMPI_ERR_OUT_OF_RESOURCE : MPI_ERR_OTHER;
}

static int module_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BARRIER);
    (void)module;
    return module_run(comm, &c);
}

static int module_bcast(void *buf, int count, struct ompi_datatype_t *datatype, int root,
                        struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_BCAST);
    struct coll_strata_data data;
    bool sends = ompi_comm_rank(comm) == root;
    int rc = coll_strata_data_open(&data, buf, (size_t)count, datatype, sends), closed;
    (void)module;
    c.recv = data.block;
    c.count = data.bytes;
    c.root = root;
    if (rc == OMPI_SUCCESS)
        rc = module_run(comm, &c);
    closed = coll_strata_data_close(&data, rc == OMPI_SUCCESS && !sends);
    return rc == OMPI_SUCCESS ? closed : rc;
}

/* Blocks of all members that are received, of one member or all that are sent. */
static int module_exchange(strata_coll_t *c, const void *sbuf, size_t scount, struct ompi_datatype_t *sdtype,
                           void *rbuf, size_t rcount, struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm)
{
    size_t n = (size_t)ompi_comm_size(comm);
    struct coll_strata_data in = {.packed = NULL}, out;
    bool in_place = sbuf == MPI_IN_PLACE;
    int rc = coll_strata_data_open(&out, rbuf, rcount * n, rdtype, in_place), closed;
    if (rc == OMPI_SUCCESS && !in_place)
        rc = coll_strata_data_open(&in, sbuf, scount, sdtype, true);
    c->send = in_place ? STRATA_IN_PLACE : in.block;
    c->recv = out.block;
    c->count = out.bytes / n;
    if (rc == OMPI_SUCCESS)
        rc = module_run(comm, c);
    closed = coll_strata_data_close(&out, rc == OMPI_SUCCESS);
    coll_strata_data_close(&in, false);
    return rc == OMPI_SUCCESS ? closed : rc;
}

static int module_allgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                            struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                            mca_coll_base_module_t *module)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLGATHER);
    (void)module;
    return module_exchange(&c, sbuf, (size_t)scount, sdtype, rbuf, (size_t)rcount, rdtype, comm);
}

static int module_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf, int rcount,
                           struct ompi_datatype_t *rdtype, struct ompi_communicator_t *comm,
                           mca_coll_base_module_t *module)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLTOALL);
    (void)module;
    return module_exchange(&c, sbuf, (size_t)scount * (size_t)ompi_comm_size(comm), sdtype, rbuf, (size_t)rcount,
                           rdtype, comm);
}

/* ---- reductions: by the calls of MPI, since the header of operations is not installed ---- */

struct reduction {
    struct ompi_op_t *op;
    struct ompi_datatype_t *datatype;
};

static void module_combine(void *arg, const void *in, void *inout, size_t count)
{
    const struct reduction *r = arg;
    (void)MPI_Reduce_local(in, inout, (int)count, r->datatype, r->op);
}

static void module_reduction(strata_coll_t *c, struct reduction *r, const void *sbuf, void *rbuf, int count)
{
    int commutes = 0;
    c->send = sbuf == MPI_IN_PLACE ? STRATA_IN_PLACE : sbuf;
    c->recv = rbuf;
    c->count = (size_t)count;
    c->element = r->datatype->super.size;
    c->reduce = module_combine;
    c->reduce_arg = r;
    c->not_commutative = MPI_Op_commutative(r->op, &commutes) != MPI_SUCCESS || !commutes;
}

/* Datatype and operation are the same at all members (MPI-3.1, section 5.9.1): so is this. */
static bool module_reduces(const struct ompi_datatype_t *datatype)
{
    return coll_strata_plain(datatype) && datatype->super.size > 0;
}

static int module_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *datatype,
                            struct ompi_op_t *op, struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLREDUCE);
    struct reduction r = {op, datatype};
    if (!module_reduces(datatype))
        return m->allreduce(sbuf, rbuf, count, datatype, op, comm, m->allreduce_module);
    module_reduction(&c, &r, sbuf, rbuf, count);
    return module_run(comm, &c);
}

static int module_reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *datatype,
                         struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                         mca_coll_base_module_t *module)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    strata_coll_t c = STRATA_COLL_INIT(STRATA_REDUCE);
    struct reduction r = {op, datatype};
    if (!module_reduces(datatype))
        return m->reduce(sbuf, rbuf, count, datatype, op, root, comm, m->reduce_module);
    module_reduction(&c, &r, sbuf, rbuf, count);
    c.root = root;
    return module_run(comm, &c);
}

/* ---- selection ---- */

/* What is selected so far stays for what is left to it. */
static int module_enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    struct coll_strata_module *m = (struct coll_strata_module *)module;
    m->reduce = comm->c_coll->coll_reduce;
    m->reduce_module = comm->c_coll->coll_reduce_module;
    m->allreduce = comm->c_coll->coll_allreduce;
    m->allreduce_module = comm->c_coll->coll_allreduce_module;
    if (!m->reduce || !m->allreduce)
        return OMPI_ERR_NOT_FOUND;
    OBJ_RETAIN(m->reduce_module);
    OBJ_RETAIN(m->allreduce_module);
    return OMPI_SUCCESS;
}

static void module_construct(struct coll_strata_module *m)
{
    m->reduce_module = m->allreduce_module = NULL;
}

static void module_destruct(struct coll_strata_module *m)
{
    if (m->reduce_module)
        OBJ_RELEASE(m->reduce_module);
    if (m->allreduce_module)
        OBJ_RELEASE(m->allreduce_module);
}

OBJ_CLASS_INSTANCE(coll_strata_module_t, mca_coll_base_module_t, module_construct, module_destruct);

static bool module_is_local(struct ompi_communicator_t *comm)
{
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        const ompi_proc_t *proc = ompi_comm_peer_lookup(comm, i);
        if (!proc || (proc != ompi_proc_local() && !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags)))
            return false;
    }
    return true;
}

mca_coll_base_module_t *coll_strata_query(struct ompi_communicator_t *comm, int *priority)
{
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    *priority = coll_strata.priority;
    if (coll_strata.priority <= 0 || strcmp(pml, "strata") != 0 || OMPI_COMM_IS_INTER(comm) ||
        ompi_comm_size(comm) < 2 || ompi_comm_size(comm) > coll_strata.most || !module_is_local(comm))
        return NULL;
    struct coll_strata_module *m = OBJ_NEW(coll_strata_module_t);
    if (!m)
        return NULL;
    m->super.coll_module_enable = module_enable;
    m->super.coll_barrier = module_barrier;
    m->super.coll_bcast = module_bcast;
    m->super.coll_reduce = module_reduce;
    m->super.coll_allreduce = module_allreduce;
    m->super.coll_allgather = module_allgather;
    m->super.coll_alltoall = module_alltoall;
    return &m->super;
}

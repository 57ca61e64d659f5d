/* The embedder's form of the operations: storage of its own, completion by callback (<strata/host.h>). */
#include "framework/base/context.h"
#include "framework/pml/veneer.h"

#include <strata/sdk/rte.h>

size_t strata_request_size(const strata_t *s)
{
    return s->pml->ops->request_size;
}

size_t strata_request_align(const strata_t *s)
{
    return s->pml->ops->request_align;
}

/* One block of memory to or from a member: all that most calls need to have checked. */
static inline bool pml_plain(const strata_comm_t *comm, const strata_data_t *data, int tag)
{
    return ST_LIKELY(comm != NULL && data != NULL && data->kind == STRATA_CONTIGUOUS && tag >= comm->tag_min &&
                     (data->u.buffer != NULL || data->length == 0));
}

static inline int pml_check_send(const strata_comm_t *comm, const strata_data_t *data, int dst, int tag,
                                 strata_mode_t mode)
{
    if (pml_plain(comm, data, tag) && tag != STRATA_ANY_TAG && !st_dst_odd(comm, dst) &&
        st_check_mode(mode) == STRATA_OK)
        return STRATA_OK;
    return st_check_send(comm, data, dst, tag, mode);
}

static inline int pml_check_recv(const strata_comm_t *comm, const strata_data_t *data, int src, int tag)
{
    return pml_plain(comm, data, tag) && !st_src_odd(comm, src) ? STRATA_OK : st_check_recv(comm, data, src, tag);
}

int strata_host_isend(strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode,
                      void *storage, strata_complete_fn fn, void *arg)
{
    int rc = storage && !fn ? STRATA_ERR_ARG : pml_check_send(comm, data, dst, tag, mode);
    if (rc < 0)
        return rc;
    if (rc == ST_TO_NOBODY)
        return 1;
    struct st_pml_send a = st_send_args(data, dst, tag, mode);
    a.storage = storage;
    a.fn = fn;
    a.arg = arg;
    return comm->ops->isend(comm, &a, NULL);
}

/* A receive from nobody is complete before the call that starts it returns. */
static int pml_receive_nobody(strata_comm_t *comm, void *storage, strata_complete_fn fn, void *arg)
{
    strata_request_t *r = storage;
    *r = (struct strata_request){.flags = ST_REQ_FOREIGN | ST_REQ_NULL, .comm = comm, .fn = fn, .arg = arg};
    st_status_nobody(&r->status);
    atomic_store_explicit(&r->state, ST_REQ_COMPLETE, memory_order_release);
    strata_status_t status = r->status; /* fn may reuse the storage */
    fn(arg, r, &status);
    return STRATA_OK;
}

int strata_host_irecv(strata_comm_t *comm, const strata_data_t *data, int src, int tag, void *storage,
                      strata_complete_fn fn, void *arg)
{
    int rc = storage && fn ? pml_check_recv(comm, data, src, tag) : STRATA_ERR_ARG;
    if (rc < 0)
        return rc;
    if (rc == ST_TO_NOBODY)
        return pml_receive_nobody(comm, storage, fn, arg);
    struct st_pml_recv a = st_recv_args(data, src, tag);
    a.storage = storage;
    a.fn = fn;
    a.arg = arg;
    return comm->ops->irecv(comm, &a, NULL);
}

int strata_host_imrecv(strata_message_t **msg, const strata_data_t *data, void *storage, strata_complete_fn fn,
                       void *arg)
{
    int rc = msg && *msg && storage && fn ? st_check_data(data, false) : STRATA_ERR_ARG;
    if (rc != STRATA_OK)
        return rc;
    strata_message_t *m = *msg;
    /* Before the call: fn may run inside it and look at *msg. */
    *msg = NULL;
    if (m == st_message_null())
        return pml_receive_nobody(NULL, storage, fn, arg);
    struct st_pml_recv a = st_recv_args(data, STRATA_ANY_SOURCE, STRATA_ANY_TAG);
    a.storage = storage;
    a.fn = fn;
    a.arg = arg;
    rc = m->comm->ops->imrecv(m, &a, NULL);
    if (rc != STRATA_OK)
        *msg = m;
    return rc;
}

int strata_host_cancel(void *storage)
{
    strata_request_t *r = storage;
    if (!r)
        return STRATA_ERR_ARG;
    return r->flags & ST_REQ_NULL ? STRATA_OK : r->comm->ops->cancel(r);
}

int strata_host_peer_failed(strata_t *s, int rank, const char *reason)
{
    if (!s)
        return STRATA_ERR_ARG;
    if (rank < 0 || rank >= s->rte->size)
        return STRATA_ERR_RANK;
    st_worker_peer_failed(s->worker, rank, STRATA_ERR_PEER, reason);
    return STRATA_OK;
}

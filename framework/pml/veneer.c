/* Checks of described operations, and what stands for requests to or from STRATA_PROC_NULL. */
#include "framework/pml/veneer.h"

#include <stdlib.h>

int st_check_data(const strata_data_t *data, bool sending)
{
    int rc = st_data_check(data);
    if (rc != STRATA_OK)
        return rc;
    if (data->kind == STRATA_GENERIC && !(sending ? data->u.convert.pack != NULL : data->u.convert.unpack != NULL))
        return STRATA_ERR_ARG;
    return STRATA_OK;
}

int st_check_send(const strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode)
{
    int rc = st_check_mode(mode);
    if (rc == STRATA_OK)
        rc = st_check_data(data, true);
    return rc != STRATA_OK ? rc : st_check_dst(comm, dst, tag);
}

int st_check_recv(const strata_comm_t *comm, const strata_data_t *data, int src, int tag)
{
    int rc = st_check_data(data, false);
    return rc != STRATA_OK ? rc : st_check_src(comm, src, tag);
}

void st_status_nobody(strata_status_t *status)
{
    if (status)
        *status = (strata_status_t){.source = STRATA_PROC_NULL, .tag = STRATA_ANY_TAG};
}

void st_status_empty(strata_status_t *status)
{
    if (status)
        *status = (strata_status_t){.source = STRATA_ANY_SOURCE, .tag = STRATA_ANY_TAG};
}

static const struct strata_request null_send = {.state = ST_REQ_COMPLETE,
                                                .flags = ST_REQ_STATIC | ST_REQ_NULL,
                                                .status = {.source = STRATA_ANY_SOURCE, .tag = STRATA_ANY_TAG}};
static const struct strata_request null_recv = {.state = ST_REQ_COMPLETE,
                                                .flags = ST_REQ_STATIC | ST_REQ_NULL,
                                                .status = {.source = STRATA_PROC_NULL, .tag = STRATA_ANY_TAG}};
static const struct strata_message null_message;

/* The casts drop const: callers hold these as any request or message, and ST_REQ_STATIC keeps all from writing. */
strata_request_t *st_request_null_send(void)
{
    return (strata_request_t *)(uintptr_t)&null_send;
}

strata_request_t *st_request_null_recv(void)
{
    return (strata_request_t *)(uintptr_t)&null_recv;
}

strata_message_t *st_message_null(void)
{
    return (strata_message_t *)(uintptr_t)&null_message;
}

int st_null_init(strata_comm_t *comm, bool sending, strata_request_t **req)
{
    struct strata_request *r = calloc(1, sizeof(*r));
    if (!r)
        return STRATA_ERR_NOMEM;
    r->flags = ST_REQ_PERSISTENT | ST_REQ_NULL;
    r->comm = comm;
    r->status = sending ? null_send.status : null_recv.status;
    *req = r;
    return STRATA_OK;
}

void st_null_start(strata_request_t *req)
{
    atomic_store_explicit(&req->state, ST_REQ_COMPLETE, memory_order_release);
}

void st_null_free(strata_request_t *req)
{
    free(req);
}

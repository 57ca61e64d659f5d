/* What the files of the public interface share: checks of arguments, and requests to or from STRATA_PROC_NULL. */
#ifndef ST_PML_VENEER_H
#define ST_PML_VENEER_H

#include <strata/sdk/hint.h>
#include <strata/sdk/pml.h>

#define ST_TO_NOBODY 1 /* a check's third result beside STRATA_OK and errors: STRATA_PROC_NULL */

/* One compare covers negative ranks (STRATA_PROC_NULL among them) and those beyond the communicator. */
static inline bool st_dst_odd(const strata_comm_t *comm, int dst)
{
    return (unsigned)dst >= (unsigned)comm->size;
}

/* STRATA_ANY_SOURCE, -1, is as good as a rank. */
static inline bool st_src_odd(const strata_comm_t *comm, int src)
{
    return (unsigned)src + 1u > (unsigned)comm->size;
}

static inline int st_check_dst(const strata_comm_t *comm, int dst, int tag)
{
    if (!comm)
        return STRATA_ERR_ARG;
    if (ST_UNLIKELY(tag < 0) && (tag == STRATA_ANY_TAG || tag < comm->tag_min))
        return STRATA_ERR_TAG;
    if (ST_UNLIKELY(st_dst_odd(comm, dst)))
        return dst == STRATA_PROC_NULL ? ST_TO_NOBODY : STRATA_ERR_RANK;
    return STRATA_OK;
}

static inline int st_check_src(const strata_comm_t *comm, int src, int tag)
{
    if (!comm)
        return STRATA_ERR_ARG;
    if (ST_UNLIKELY(tag < STRATA_ANY_TAG) && tag < comm->tag_min)
        return STRATA_ERR_TAG;
    if (ST_UNLIKELY(st_src_odd(comm, src)))
        return src == STRATA_PROC_NULL ? ST_TO_NOBODY : STRATA_ERR_RANK;
    return STRATA_OK;
}

static inline int st_check_buffer(const void *buf, size_t len)
{
    return buf == NULL && len != 0 ? STRATA_ERR_ARG : STRATA_OK;
}

static inline int st_check_mode(strata_mode_t mode)
{
    return (unsigned)mode > STRATA_READY ? STRATA_ERR_ARG : STRATA_OK;
}

/* All of a described operation: data, direction, peer, tag. */
int st_check_send(const strata_comm_t *comm, const strata_data_t *data, int dst, int tag, strata_mode_t mode);
int st_check_recv(const strata_comm_t *comm, const strata_data_t *data, int src, int tag);
int st_check_data(const strata_data_t *data, bool sending);

/* Contiguous data goes to the PML as pointer and length, so that it need not look at a description. */
static inline struct st_pml_send st_send_args(const strata_data_t *data, int dst, int tag, strata_mode_t mode)
{
    struct st_pml_send a = {.len = data->length, .dst = dst, .tag = tag, .mode = mode};
    if (data->kind == STRATA_CONTIGUOUS)
        a.buf = data->u.buffer;
    else
        a.data = data;
    return a;
}

static inline struct st_pml_recv st_recv_args(const strata_data_t *data, int src, int tag)
{
    struct st_pml_recv a = {.len = data->length, .src = src, .tag = tag};
    if (data->kind == STRATA_CONTIGUOUS)
        a.buf = data->u.buffer;
    else
        a.data = data;
    return a;
}

/* Status of a receive from nobody, and of a request that is not active. */
void st_status_nobody(strata_status_t *status);
void st_status_empty(strata_status_t *status);

/* Complete requests that no one owns: of a send to and a receive from nobody. Never written. */
strata_request_t *st_request_null_send(void);
strata_request_t *st_request_null_recv(void);
/* Persistent form, to be started and freed by st_null_start and st_null_free. */
int st_null_init(strata_comm_t *comm, bool sending, strata_request_t **req);
void st_null_start(strata_request_t *req);
void st_null_free(strata_request_t *req);

/* What a matched probe of nobody takes. */
strata_message_t *st_message_null(void);

#endif

/* Probes and matched receives. */
#include "framework/pml/poll.h"
#include "framework/pml/veneer.h"

struct probe {
    strata_comm_t *comm;
    int src, tag;
    strata_message_t **msg; /* NULL: leave the message in matching */
    strata_status_t *status;
    int found;
    int rc;
};

/* May be asked again after it has said yes: a matched probe must not take a second message then. */
static bool pml_probe_once(void *arg)
{
    struct probe *p = arg;
    if (p->found || p->rc != STRATA_OK)
        return true;
    p->rc = p->comm->ops->iprobe(p->comm, p->src, p->tag, &p->found, p->msg, p->status);
    return p->rc != STRATA_OK || p->found;
}

static void pml_probe_nobody(strata_message_t **msg, strata_status_t *status)
{
    st_status_nobody(status);
    if (msg)
        *msg = st_message_null();
}

static int pml_probe_wait(strata_comm_t *comm, int src, int tag, strata_message_t **msg, strata_status_t *status)
{
    int rc = st_check_src(comm, src, tag);
    if (rc == ST_TO_NOBODY) {
        pml_probe_nobody(msg, status);
        return STRATA_OK;
    }
    if (rc != STRATA_OK)
        return rc;
    struct probe p = {.comm = comm, .src = src, .tag = tag, .msg = msg, .status = status};
    st_worker_wait_acting(comm->worker, pml_probe_once, &p);
    return p.rc;
}

static int pml_probe_now(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg,
                         strata_status_t *status)
{
    int rc = found ? st_check_src(comm, src, tag) : STRATA_ERR_ARG;
    if (rc == ST_TO_NOBODY) {
        pml_probe_nobody(msg, status);
        *found = 1;
        return STRATA_OK;
    }
    if (rc != STRATA_OK)
        return rc;
    struct probe p = {.comm = comm, .src = src, .tag = tag, .msg = msg, .status = status};
    if (!pml_probe_once(&p)) {
        st_poll(comm);
        pml_probe_once(&p);
    }
    if (p.rc == STRATA_OK)
        *found = p.found;
    return p.rc;
}

int strata_probe(strata_comm_t *comm, int src, int tag, strata_status_t *status)
{
    return pml_probe_wait(comm, src, tag, NULL, status);
}

int strata_iprobe(strata_comm_t *comm, int src, int tag, int *found, strata_status_t *status)
{
    return pml_probe_now(comm, src, tag, found, NULL, status);
}

int strata_mprobe(strata_comm_t *comm, int src, int tag, strata_message_t **msg, strata_status_t *status)
{
    return msg ? pml_probe_wait(comm, src, tag, msg, status) : STRATA_ERR_ARG;
}

int strata_improbe(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg, strata_status_t *status)
{
    return msg ? pml_probe_now(comm, src, tag, found, msg, status) : STRATA_ERR_ARG;
}

static int pml_receive(strata_message_t **msg, const struct st_pml_recv *a, strata_request_t **req)
{
    if (*msg == st_message_null()) {
        *req = st_request_null_recv();
        *msg = NULL;
        return STRATA_OK;
    }
    int rc = (*msg)->comm->ops->imrecv(*msg, a, req);
    if (rc == STRATA_OK)
        *msg = NULL;
    return rc;
}

int strata_imrecv(strata_message_t **msg, void *buf, size_t len, strata_request_t **req)
{
    if (!msg || !*msg || !req || st_check_buffer(buf, len) != STRATA_OK)
        return STRATA_ERR_ARG;
    struct st_pml_recv a = {.buf = buf, .len = len, .src = STRATA_ANY_SOURCE, .tag = STRATA_ANY_TAG};
    return pml_receive(msg, &a, req);
}

int strata_imrecv_data(strata_message_t **msg, const strata_data_t *data, strata_request_t **req)
{
    if (!msg || !*msg || !req)
        return STRATA_ERR_ARG;
    int rc = st_check_data(data, false);
    if (rc != STRATA_OK)
        return rc;
    struct st_pml_recv a = st_recv_args(data, STRATA_ANY_SOURCE, STRATA_ANY_TAG);
    return pml_receive(msg, &a, req);
}

int strata_mrecv(strata_message_t **msg, void *buf, size_t len, strata_status_t *status)
{
    strata_request_t *req = NULL;
    int rc = strata_imrecv(msg, buf, len, &req);
    return rc != STRATA_OK ? rc : strata_wait(&req, status);
}

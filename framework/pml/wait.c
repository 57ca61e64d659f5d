/* Completion. A request's state is read with acquire: it pairs with the PML's release store after the status. */
#include "framework/pml/poll.h"
#include "framework/pml/veneer.h"

static inline uint8_t state_of(const strata_request_t *r)
{
    return atomic_load_explicit(&r->state, memory_order_acquire);
}

static inline bool pending(const strata_request_t *r)
{
    return r && state_of(r) == ST_REQ_ACTIVE;
}

static inline bool completed(const strata_request_t *r)
{
    return r && state_of(r) == ST_REQ_COMPLETE;
}

/* Takes the result of a request that is not pending, and gives the request up or makes it inactive. */
static inline int take(strata_request_t **req, strata_status_t *status)
{
    strata_request_t *r = *req;
    if (!completed(r)) {
        st_status_empty(status);
        return STRATA_OK;
    }
    int error = r->status.error;
    if (status)
        *status = r->status;
    if (r->flags & ST_REQ_PERSISTENT) {
        atomic_store_explicit(&r->state, ST_REQ_INACTIVE, memory_order_relaxed);
        return error;
    }
    *req = NULL;
    if (!(r->flags & ST_REQ_STATIC))
        r->comm->ops->request_free(r);
    return error;
}

static bool one_done(void *arg)
{
    return !pending(arg);
}

static void wait_for(strata_request_t *r)
{
    st_worker_wait(r->comm->worker, one_done, r);
}

int strata_wait(strata_request_t **req, strata_status_t *status)
{
    if (!req)
        return STRATA_ERR_ARG;
    if (pending(*req))
        wait_for(*req);
    return take(req, status);
}

int strata_test(strata_request_t **req, int *done, strata_status_t *status)
{
    if (!req || !done)
        return STRATA_ERR_ARG;
    if (pending(*req)) {
        st_poll((*req)->comm);
        if (pending(*req)) {
            *done = 0;
            return STRATA_OK;
        }
    }
    *done = 1;
    return take(req, status);
}

static int take_all(size_t n, strata_request_t *reqs[], strata_status_t *statuses)
{
    int first = STRATA_OK;
    for (size_t i = 0; i < n; i++) {
        int rc = take(&reqs[i], statuses ? &statuses[i] : NULL);
        if (first == STRATA_OK)
            first = rc;
    }
    return first;
}

int strata_waitall(size_t n, strata_request_t *reqs[], strata_status_t *statuses)
{
    if (n > 0 && !reqs)
        return STRATA_ERR_ARG;
    int first = STRATA_OK;
    for (size_t i = 0; i < n; i++) {
        if (pending(reqs[i]))
            wait_for(reqs[i]);
        int error = take(&reqs[i], statuses ? &statuses[i] : NULL);
        if (first == STRATA_OK)
            first = error;
    }
    return first;
}

/* The first pending one of n, or n. */
static size_t find_pending(size_t n, strata_request_t *const reqs[])
{
    size_t i = 0;
    while (i < n && !pending(reqs[i]))
        i++;
    return i;
}

int strata_testall(size_t n, strata_request_t *reqs[], int *done, strata_status_t *statuses)
{
    if ((n > 0 && !reqs) || !done)
        return STRATA_ERR_ARG;
    size_t i = find_pending(n, reqs);
    if (i < n) {
        st_poll(reqs[i]->comm);
        if (find_pending(n, reqs) < n) {
            *done = 0;
            return STRATA_OK;
        }
    }
    *done = 1;
    return take_all(n, reqs, statuses);
}

struct any {
    size_t n;
    strata_request_t *const *reqs;
    size_t found; /* n: none */
};

static bool any_done(void *arg)
{
    struct any *a = arg;
    for (a->found = 0; a->found < a->n; a->found++)
        if (completed(a->reqs[a->found]))
            return true;
    return false;
}

/* Of none active the result is an empty status and index -1. */
static int take_any(struct any *a, strata_request_t *reqs[], int *index, strata_status_t *status)
{
    if (a->found == a->n) {
        *index = -1;
        st_status_empty(status);
        return STRATA_OK;
    }
    *index = (int)a->found;
    return take(&reqs[a->found], status);
}

int strata_waitany(size_t n, strata_request_t *reqs[], int *index, strata_status_t *status)
{
    if ((n > 0 && !reqs) || !index)
        return STRATA_ERR_ARG;
    struct any a = {.n = n, .reqs = reqs};
    if (!any_done(&a)) {
        size_t i = find_pending(n, reqs);
        if (i < n)
            st_worker_wait(reqs[i]->comm->worker, any_done, &a);
    }
    return take_any(&a, reqs, index, status);
}

int strata_testany(size_t n, strata_request_t *reqs[], int *index, int *done, strata_status_t *status)
{
    if ((n > 0 && !reqs) || !index || !done)
        return STRATA_ERR_ARG;
    struct any a = {.n = n, .reqs = reqs};
    if (!any_done(&a)) {
        size_t i = find_pending(n, reqs);
        if (i < n) {
            st_poll(reqs[i]->comm);
            if (!any_done(&a)) {
                *done = 0;
                return STRATA_OK;
            }
        }
    }
    *done = 1;
    return take_any(&a, reqs, index, status);
}

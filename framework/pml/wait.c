/* Completion. A request's state is read with acquire: it pairs with the PML's release store after the status. */
#include "framework/pml/poll.h"
#include "framework/pml/veneer.h"

static inline uint8_t pml_wait_state_of(const strata_request_t *r)
{
    return atomic_load_explicit(&r->state, memory_order_acquire);
}

static inline bool pml_wait_pending(const strata_request_t *r)
{
    return r && pml_wait_state_of(r) == ST_REQ_ACTIVE;
}

static inline bool pml_wait_completed(const strata_request_t *r)
{
    return r && pml_wait_state_of(r) == ST_REQ_COMPLETE;
}

/* Takes the result of a request that is not pending, and gives the request up or makes it inactive. */
static inline int pml_wait_take(strata_request_t **req, strata_status_t *status)
{
    strata_request_t *r = *req;
    if (!pml_wait_completed(r)) {
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

static bool pml_wait_one_done(void *arg)
{
    return !pml_wait_pending(arg);
}

static void pml_wait_for(strata_request_t *r)
{
    st_worker_wait(r->comm->worker, pml_wait_one_done, r);
}

int strata_wait(strata_request_t **req, strata_status_t *status)
{
    if (!req)
        return STRATA_ERR_ARG;
    if (pml_wait_pending(*req))
        pml_wait_for(*req);
    return pml_wait_take(req, status);
}

int strata_test(strata_request_t **req, int *done, strata_status_t *status)
{
    if (!req || !done)
        return STRATA_ERR_ARG;
    if (pml_wait_pending(*req)) {
        st_poll((*req)->comm);
        if (pml_wait_pending(*req)) {
            *done = 0;
            return STRATA_OK;
        }
    }
    *done = 1;
    return pml_wait_take(req, status);
}

static int pml_wait_take_all(size_t n, strata_request_t *reqs[], strata_status_t *statuses)
{
    int first = STRATA_OK;
    for (size_t i = 0; i < n; i++) {
        int rc = pml_wait_take(&reqs[i], statuses ? &statuses[i] : NULL);
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
        if (pml_wait_pending(reqs[i]))
            pml_wait_for(reqs[i]);
        int error = pml_wait_take(&reqs[i], statuses ? &statuses[i] : NULL);
        if (first == STRATA_OK)
            first = error;
    }
    return first;
}

/* The first pending one of n, or n. */
static size_t pml_wait_find_pending(size_t n, strata_request_t *const reqs[])
{
    size_t i = 0;
    while (i < n && !pml_wait_pending(reqs[i]))
        i++;
    return i;
}

int strata_testall(size_t n, strata_request_t *reqs[], int *done, strata_status_t *statuses)
{
    if ((n > 0 && !reqs) || !done)
        return STRATA_ERR_ARG;
    size_t i = pml_wait_find_pending(n, reqs);
    if (i < n) {
        st_poll(reqs[i]->comm);
        if (pml_wait_find_pending(n, reqs) < n) {
            *done = 0;
            return STRATA_OK;
        }
    }
    *done = 1;
    return pml_wait_take_all(n, reqs, statuses);
}

struct any {
    size_t n;
    strata_request_t *const *reqs;
    size_t found; /* n: none */
};

static bool pml_wait_any_done(void *arg)
{
    struct any *a = arg;
    for (a->found = 0; a->found < a->n; a->found++)
        if (pml_wait_completed(a->reqs[a->found]))
            return true;
    return false;
}

/* Of none active the result is an empty status and index -1. */
static int pml_wait_take_any(struct any *a, strata_request_t *reqs[], int *index, strata_status_t *status)
{
    if (a->found == a->n) {
        *index = -1;
        st_status_empty(status);
        return STRATA_OK;
    }
    *index = (int)a->found;
    return pml_wait_take(&reqs[a->found], status);
}

int strata_waitany(size_t n, strata_request_t *reqs[], int *index, strata_status_t *status)
{
    if ((n > 0 && !reqs) || !index)
        return STRATA_ERR_ARG;
    struct any a = {.n = n, .reqs = reqs};
    if (!pml_wait_any_done(&a)) {
        size_t i = pml_wait_find_pending(n, reqs);
        if (i < n)
            st_worker_wait(reqs[i]->comm->worker, pml_wait_any_done, &a);
    }
    return pml_wait_take_any(&a, reqs, index, status);
}

int strata_testany(size_t n, strata_request_t *reqs[], int *index, int *done, strata_status_t *status)
{
    if ((n > 0 && !reqs) || !index || !done)
        return STRATA_ERR_ARG;
    struct any a = {.n = n, .reqs = reqs};
    if (!pml_wait_any_done(&a)) {
        size_t i = pml_wait_find_pending(n, reqs);
        if (i < n) {
            st_poll(reqs[i]->comm);
            if (!pml_wait_any_done(&a)) {
                *done = 0;
                return STRATA_OK;
            }
        }
    }
    *done = 1;
    return pml_wait_take_any(&a, reqs, index, status);
}

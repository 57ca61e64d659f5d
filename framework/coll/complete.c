/* The public interface of collectives: completion, of one or of several. */
#include <strata/sdk/coll.h>

static bool complete_done(void *arg)
{
    return strata_coll_done(arg) != 0;
}

int strata_coll_done(const strata_coll_request_t *req)
{
    return !req || atomic_load_explicit(&req->done, memory_order_acquire);
}

/* Frees a complete request and tells what came of it. */
static int complete_take(strata_coll_request_t **req, int *failed)
{
    strata_coll_request_t *r = *req;
    int rc = r->error;
    if (failed)
        *failed = r->failed;
    *req = NULL;
    r->free(r);
    return rc;
}

int strata_coll_wait(strata_coll_request_t **req, int *failed)
{
    if (!req || !*req)
        return STRATA_ERR_ARG;
    if (!strata_coll_done(*req))
        st_worker_wait((*req)->worker, complete_done, *req);
    return complete_take(req, failed);
}

int strata_coll_test(strata_coll_request_t **req, int *done, int *failed)
{
    if (!req || !*req || !done)
        return STRATA_ERR_ARG;
    if (!strata_coll_done(*req))
        (void)strata_progress((*req)->worker->context);
    *done = strata_coll_done(*req);
    return *done ? complete_take(req, failed) : STRATA_OK;
}

/* ---- several ---- */

struct several {
    strata_coll_request_t **reqs;
    size_t n;
    bool all;                 /* what is asked for: all are complete, or one is */
    size_t active;            /* entries that are not NULL */
    size_t found;             /* a complete one, where one is asked for; n: none */
    struct st_worker *worker; /* of the active ones */
};

/* Whether they are as asked for; true where all are NULL. */
static bool several_look(void *arg)
{
    struct several *v = arg;
    size_t complete = 0;
    v->active = 0;
    v->found = v->n;
    for (size_t i = 0; i < v->n; i++) {
        if (!v->reqs[i])
            continue;
        v->active++;
        v->worker = v->reqs[i]->worker;
        if (!strata_coll_done(v->reqs[i]))
            continue;
        complete++;
        if (v->found == v->n)
            v->found = i;
    }
    return v->all ? complete == v->active : complete > 0 || v->active == 0;
}

/* Looks, makes progress or waits, and looks again. */
static bool several_move(struct several *v, bool waits)
{
    if (several_look(v) || !v->worker)
        return true;
    if (waits)
        st_worker_wait(v->worker, several_look, v);
    else
        (void)strata_progress(v->worker->context);
    return several_look(v);
}

static int several_take_all(struct several *v, int *failed)
{
    int first = STRATA_OK;
    if (failed)
        *failed = -1;
    for (size_t i = 0; i < v->n; i++) {
        int lost, rc = v->reqs[i] ? complete_take(&v->reqs[i], &lost) : STRATA_OK;
        if (rc == STRATA_OK || first != STRATA_OK)
            continue;
        first = rc;
        if (failed)
            *failed = lost;
    }
    return first;
}

static int several_take_one(struct several *v, int *index, int *failed)
{
    *index = v->active ? (int)v->found : -1;
    if (failed)
        *failed = -1;
    return v->active ? complete_take(&v->reqs[v->found], failed) : STRATA_OK;
}

int strata_coll_waitall(size_t n, strata_coll_request_t *reqs[], int *failed)
{
    struct several v = {.reqs = reqs, .n = n, .all = true};
    if (!reqs && n > 0)
        return STRATA_ERR_ARG;
    (void)several_move(&v, true);
    return several_take_all(&v, failed);
}

int strata_coll_testall(size_t n, strata_coll_request_t *reqs[], int *done, int *failed)
{
    struct several v = {.reqs = reqs, .n = n, .all = true};
    if ((!reqs && n > 0) || !done)
        return STRATA_ERR_ARG;
    *done = several_move(&v, false);
    return *done ? several_take_all(&v, failed) : STRATA_OK;
}

int strata_coll_waitany(size_t n, strata_coll_request_t *reqs[], int *index, int *failed)
{
    struct several v = {.reqs = reqs, .n = n};
    if ((!reqs && n > 0) || !index)
        return STRATA_ERR_ARG;
    (void)several_move(&v, true);
    return several_take_one(&v, index, failed);
}

int strata_coll_testany(size_t n, strata_coll_request_t *reqs[], int *index, int *done, int *failed)
{
    struct several v = {.reqs = reqs, .n = n};
    if ((!reqs && n > 0) || !index || !done)
        return STRATA_ERR_ARG;
    *done = several_move(&v, false);
    return *done ? several_take_one(&v, index, failed) : STRATA_OK;
}

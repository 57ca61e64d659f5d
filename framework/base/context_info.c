/* Facts of a context, for programs and for components. */
#include <strata/sdk/rte.h>

#include "framework/base/context.h"
#include "framework/base/fence.h"

int strata_rank(const strata_t *s)
{
    return s->rte->rank;
}

int strata_size(const strata_t *s)
{
    return s->rte->size;
}

strata_comm_t *strata_world(strata_t *s)
{
    return s->world;
}

int strata_fence(strata_t *s)
{
    return s ? st_fence(s) : STRATA_ERR_ARG;
}

int strata_abort(strata_t *s, int status, const char *reason)
{
    if (!s)
        return STRATA_ERR_ARG;
    st_log(s, ST_LOG_ERROR, NULL, "aborts the job with status %d%s%s", status, reason ? ": " : "",
           reason ? reason : "");
    s->rte->ops->abort(s->rte, status, reason ? reason : "");
    return STRATA_OK;
}

int strata_progress(strata_t *s)
{
    return st_worker_progress(s->worker);
}

enum st_tune st_tuning(const strata_t *s)
{
    return (enum st_tune)s->base->tune;
}

bool st_thread_multiple(const strata_t *s)
{
    return s->thread_level == STRATA_THREAD_MULTIPLE;
}

struct st_rte *st_rte(const strata_t *s)
{
    return s->rte;
}

/* rte "pmix": joins the job of any launcher that speaks PMIx. */
#include "rte_pmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_local(struct st_rte *rte, int rank)
{
    const struct rte_pmix *r = rte_pmix_self(rte);
    int low = 0, high = r->n_local - 1;
    while (low <= high) {
        int mid = low + (high - low) / 2;
        if (r->local[mid] == rank)
            return true;
        if (r->local[mid] < rank)
            low = mid + 1;
        else
            high = mid - 1;
    }
    return false;
}

static const int *local_ranks(struct st_rte *rte, int *n)
{
    *n = rte_pmix_self(rte)->n_local;
    return rte_pmix_self(rte)->local;
}

/* Only what the server already told us: naming a host in a message must not block. */
static pmix_value_t *job_value(const char *nspace, pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc;
    pmix_info_t optional;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&proc, nspace, rank);
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, NULL, PMIX_BOOL);
    return PMIx_Get(&proc, key, &optional, 1, &value) == PMIX_SUCCESS ? value : NULL;
}

static void job_value_put(pmix_value_t *value)
{
    if (value)
        PMIX_VALUE_RELEASE(value);
}

static const char *host_of(struct st_rte *rte, int rank)
{
    struct rte_pmix *r = rte_pmix_self(rte);
    if (rank < 0 || rank >= rte->size)
        return "?";
    if (is_local(rte, rank))
        return rte->host;
    pmix_value_t *value = job_value(r->me.nspace, (pmix_rank_t)rank, PMIX_HOSTNAME);
    bool named = value && value->type == PMIX_STRING && value->data.string;
    snprintf(r->peer_host, sizeof(r->peer_host), "%s", named ? value->data.string : "?");
    job_value_put(value);
    return r->peer_host;
}

static void job_abort(struct st_rte *rte, int status, const char *reason)
{
    pmix_status_t rc = PMIx_Abort(status, reason ? reason : "aborted", NULL, 0);
    if (rc != PMIX_SUCCESS)
        st_log(rte->context, ST_LOG_ERROR, "rte_pmix", "the launcher refused to end the job: %s",
               PMIx_Error_string(rc));
}

static void close_rte(struct st_rte *rte)
{
    struct rte_pmix *r = rte_pmix_self(rte);
    rte_pmix_unwatch(r);
    rte_pmix_card_clear(&r->card);
    rte_pmix_cards_free(r);
    free(r->local);
    st_rte_free(&r->common);
    rte_pmix_session_leave();
}

static const struct st_rte_ops ops = {
    .put = rte_pmix_put,
    .commit = rte_pmix_commit,
    .get = rte_pmix_get,
    .fence = rte_pmix_fence,
    .fence_begin = rte_pmix_fence_begin,
    .abort = job_abort,
    .is_local = is_local,
    .local_ranks = local_ranks,
    .host_of = host_of,
    .watch = rte_pmix_watch,
    .close = close_rte,
};

static int64_t job_number(const pmix_value_t *v)
{
    switch (v ? v->type : PMIX_UNDEF) {
    case PMIX_UINT32:
        return v->data.uint32;
    case PMIX_INT32:
        return v->data.int32;
    case PMIX_UINT16:
        return v->data.uint16;
    case PMIX_UINT64:
        return v->data.uint64 > INT32_MAX ? -1 : (int64_t)v->data.uint64;
    case PMIX_SIZE:
        return v->data.size > INT32_MAX ? -1 : (int64_t)v->data.size;
    case PMIX_INT:
        return v->data.integer;
    case PMIX_UINT:
        return v->data.uint;
    default:
        return -1;
    }
}

/* Size of the job and who is here. Both are in the job's description that the server handed over when we joined. */
static int learn_job(struct rte_pmix *r)
{
    pmix_value_t *value = job_value(r->me.nspace, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    int64_t size = job_number(value);
    job_value_put(value);
    if (!value) {
        st_reject(
            r->common.head.context, r->component,
            "the launcher does not describe job %s to rank %u: has a program of this rank left the job already? A "
            "rank joins its job once, by one program",
            r->me.nspace, (unsigned)r->me.rank);
        return STRATA_ERR_SYSTEM;
    }
    if (size < 1 || size > INT32_MAX || (int64_t)r->me.rank >= size) {
        st_reject(r->common.head.context, r->component, "the launcher did not say how many ranks job %s has",
                  r->me.nspace);
        return STRATA_ERR_SYSTEM;
    }
    r->common.head.rank = (int)r->me.rank;
    r->common.head.size = (int)size;
    value = job_value(r->me.nspace, PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
    const char *peers = value && value->type == PMIX_STRING && value->data.string ? value->data.string : "";
    int rc = rte_pmix_parse_ranks(peers, r->common.head.size, r->common.head.rank, &r->local, &r->n_local);
    job_value_put(value);
    return rc;
}

static int job_join(struct rte_pmix *r)
{
    unsigned instance = 0;
    pmix_status_t status = rte_pmix_session_join(&r->me, &instance);
    if (status != PMIX_SUCCESS) {
        st_reject(r->common.head.context, r->component, "PMIx_Init failed in rank %s of job %s: %s",
                  getenv("PMIX_RANK"), getenv("PMIX_NAMESPACE"), PMIx_Error_string(status));
        return STRATA_ERR_SYSTEM;
    }
    int rc = learn_job(r);
    if (rc == STRATA_OK)
        rc = st_rank_table_init(&r->cards, (uint32_t)r->common.head.size);
    if (rc != STRATA_OK) {
        rte_pmix_session_leave();
        return rc;
    }
    snprintf(r->key, sizeof(r->key), "strata.card.%u", instance);
    snprintf(r->job_id, sizeof(r->job_id), "%s.%u", r->me.nspace, instance);
    return STRATA_OK;
}

static int open_rte(strata_t *context, const struct st_component *c, const void *config, const strata_host_t *host,
                    struct st_rte **out)
{
    (void)host;
    if (!rte_pmix_launched()) {
        st_reject(context, c,
                  "no PMIx launcher started this process (PMIX_NAMESPACE, PMIX_RANK and PMIX_SERVER_URI* are "
                  "not in the environment)");
        return STRATA_ERR_UNSUPPORTED;
    }
    struct rte_pmix *r = st_rte_make(sizeof(*r), &ops, context);
    if (!r)
        return STRATA_ERR_NOMEM;
    r->config = config;
    r->component = c;
    r->common.head.job_id = r->job_id;
    int rc = job_join(r);
    if (rc != STRATA_OK) {
        st_rte_free(&r->common);
        return rc;
    }
    *out = &r->common.head;
    return STRATA_OK;
}

static const struct st_param params[] = {
    {.name = "timeout",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct rte_pmix_config, timeout_s),
     .dflt = "60",
     .min = 0,
     .max = 1e6,
     .unit = "seconds",
     .help = "Longest wait for a peer that has not yet published its addresses; 0: for ever.",
     .level = 3},
};

static const struct st_rte_component_ops component_ops = {.open = open_rte};

ST_COMPONENT(rte, pmix) = {
    ST_COMPONENT_HEAD("rte", "pmix", "0.1.0", "any launcher that speaks PMIx: strata-run, mpirun, srun --mpi=pmix"),
    .ops_size = sizeof(component_ops),
    .priority = 50,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct rte_pmix_config),
    .ops = &component_ops,
};

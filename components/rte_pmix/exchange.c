/* Publishing, looking up and synchronising through the PMIx server. */
#include "rte_pmix.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rte_pmix_status(pmix_status_t rc)
{
    switch (rc) {
    case PMIX_SUCCESS:
    case PMIX_OPERATION_SUCCEEDED:
        return STRATA_OK;
    case PMIX_ERR_TIMEOUT:
        return STRATA_ERR_TIMEOUT;
    case PMIX_ERR_NOMEM:
        return STRATA_ERR_NOMEM;
    case PMIX_ERR_NOT_FOUND:
        return STRATA_ERR_NOT_FOUND;
    case PMIX_ERR_NOT_SUPPORTED:
        return STRATA_ERR_UNSUPPORTED;
    default:
        return STRATA_ERR_SYSTEM;
    }
}

int rte_pmix_put(struct st_rte *rte, const char *key, const void *blob, size_t length)
{
    struct rte_pmix *r = rte_pmix_self(rte);
    pthread_mutex_lock(&r->common.lock);
    int rc = r->committed ? STRATA_ERR_STATE : rte_pmix_card_set(&r->card, key, blob, length);
    pthread_mutex_unlock(&r->common.lock);
    return rc;
}

int rte_pmix_commit(struct st_rte *rte)
{
    struct rte_pmix *r = rte_pmix_self(rte);
    pthread_mutex_lock(&r->common.lock);
    int rc = r->committed ? STRATA_ERR_STATE : STRATA_OK;
    if (rc == STRATA_OK && r->card.length == 0) /* an empty card still says that this rank is up */
        rc = rte_pmix_card_set(&r->card, "rank", &rte->rank, sizeof(rte->rank));
    if (rc == STRATA_OK) {
        pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
        value.data.bo.bytes = (char *)r->card.bytes;
        value.data.bo.size = r->card.length;
        pmix_status_t status = PMIx_Put(PMIX_GLOBAL, r->key, &value);
        if (status == PMIX_SUCCESS)
            status = PMIx_Commit();
        rc = rte_pmix_status(status);
        if (status != PMIX_SUCCESS)
            st_log(rte->context, ST_LOG_ERROR, "rte_pmix", "cannot publish this rank's addresses: %s",
                   PMIx_Error_string(status));
        r->committed = rc == STRATA_OK;
    }
    pthread_mutex_unlock(&r->common.lock);
    return rc;
}

/* On PMIx's thread. The value is PMIx's and dies when we return. */
static void exchange_fetched(pmix_status_t rc, pmix_value_t *value, void *arg)
{
    struct rte_pmix_wait *w = arg;
    if (rc == PMIX_SUCCESS && (!value || value->type != PMIX_BYTE_OBJECT || !value->data.bo.bytes))
        rc = PMIX_ERR_TYPE_MISMATCH;
    if (rc == PMIX_SUCCESS) {
        w->blob = malloc(value->data.bo.size);
        if (w->blob) {
            memcpy(w->blob, value->data.bo.bytes, value->data.bo.size);
            w->length = value->data.bo.size;
        } else {
            rc = PMIX_ERR_NOMEM;
        }
    }
    rte_pmix_wait_answer(w, rc);
}

static int copy_out(const void *bytes, size_t n, const char *key, void **blob, size_t *length)
{
    const void *found;
    size_t size;
    int rc = rte_pmix_card_find(bytes, n, key, &found, &size);
    if (rc != STRATA_OK)
        return rc;
    void *copy = malloc(size ? size : 1);
    if (!copy)
        return STRATA_ERR_NOMEM;
    memcpy(copy, found, size);
    *blob = copy;
    *length = size;
    return STRATA_OK;
}

/* A card never changes once it is there, and libpmix 4.2 loses a few hundred bytes each time that it is asked for one:
 * who connects again and again must not ask again. Without memory to keep it, it is asked for again. */
static void exchange_keep(struct rte_pmix *r, int rank, struct rte_pmix_wait *w)
{
    struct rte_pmix_card *c = malloc(sizeof *c);
    if (!c)
        return;
    *c = (struct rte_pmix_card){.bytes = w->blob, .length = w->length};
    pthread_mutex_lock(&r->common.lock);
    bool kept =
        !st_rank_table_get(&r->cards, (uint32_t)rank) && st_rank_table_set(&r->cards, (uint32_t)rank, c) == STRATA_OK;
    pthread_mutex_unlock(&r->common.lock);
    if (kept)
        w->blob = NULL;
    else
        free(c);
}

void rte_pmix_cards_free(struct rte_pmix *r)
{
    for (int64_t rank = -1; (rank = st_rank_table_next(&r->cards, (uint32_t)(rank + 1))) >= 0;) {
        struct rte_pmix_card *c = st_rank_table_get(&r->cards, (uint32_t)rank);
        rte_pmix_card_clear(c);
        free(c);
    }
    st_rank_table_destroy(&r->cards);
}

/* STRATA_ERR_AGAIN: its card has not been fetched yet. */
static int get_kept(struct rte_pmix *r, int rank, const char *key, void **blob, size_t *length)
{
    pthread_mutex_lock(&r->common.lock);
    const struct rte_pmix_card *c = st_rank_table_get(&r->cards, (uint32_t)rank);
    int rc = c ? copy_out(c->bytes, c->length, key, blob, length) : STRATA_ERR_AGAIN;
    pthread_mutex_unlock(&r->common.lock);
    return rc;
}

static int get_own(struct rte_pmix *r, const char *key, void **blob, size_t *length)
{
    pthread_mutex_lock(&r->common.lock);
    int rc = STRATA_ERR_NOT_FOUND;
    if (r->card.length)
        rc = copy_out(r->card.bytes, r->card.length, key, blob, length);
    pthread_mutex_unlock(&r->common.lock);
    return rc;
}

/* One question to the server. PMIX_ERR_TIMEOUT when *left_ms passed without an answer; *w holds the card. About a rank
 * of this machine the server is told not to hold the question until there is an answer, for now and then libpmix 4.2
 * answers a held question with "not found". (About others it must: "immediate" also means not to ask their servers.) */
static pmix_status_t ask_once(struct rte_pmix *r, int rank, int64_t *left_ms, struct rte_pmix_wait **w)
{
    pmix_proc_t peer;
    pmix_info_t immediate;
    *w = rte_pmix_wait_create();
    if (!*w)
        return PMIX_ERR_NOMEM;
    PMIX_LOAD_PROCID(&peer, r->me.nspace, (pmix_rank_t)rank);
    PMIX_INFO_LOAD(&immediate, PMIX_IMMEDIATE, NULL, PMIX_BOOL);
    size_t n_info = r->common.head.ops->is_local(&r->common.head, rank) ? 1 : 0;
    pmix_status_t rc = PMIx_Get_nb(&peer, r->key, &immediate, n_info, exchange_fetched, *w);
    if (rc != PMIX_SUCCESS)
        rte_pmix_wait_answer(*w, rc); /* not started: PMIx will not call back */
    return rte_pmix_wait_counted(*w, left_ms);
}

/* Asks until the peer's card is there: every rank commits one in the end, so "not found" means "not yet". Pauses count
 * as long as they were meant to be. */
static pmix_status_t fetch_card(struct rte_pmix *r, int rank, struct rte_pmix_wait **w)
{
    int64_t left_ms = r->config->timeout_s * 1000, *limit = left_ms ? &left_ms : NULL, pause_us = 500;
    for (;;) {
        pmix_status_t rc = ask_once(r, rank, limit, w);
        if (rc != PMIX_ERR_NOT_FOUND || !*w)
            return rc;
        rte_pmix_wait_put(*w);
        *w = NULL;
        if (limit && left_ms <= 0)
            return PMIX_ERR_TIMEOUT;
        usleep((useconds_t)pause_us);
        left_ms -= pause_us / 1000 + 1;
        pause_us = pause_us < 50000 ? pause_us * 2 : pause_us;
    }
}

int rte_pmix_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length)
{
    struct rte_pmix *r = rte_pmix_self(rte);
    struct rte_pmix_wait *w = NULL;
    if (rank < 0 || rank >= rte->size)
        return STRATA_ERR_RANK;
    if (rank == rte->rank)
        return get_own(r, key, blob, length);
    int rc = get_kept(r, rank, key, blob, length);
    if (rc != STRATA_ERR_AGAIN)
        return rc;
    pmix_status_t status = fetch_card(r, rank, &w);
    rc = rte_pmix_status(status);
    if (rc == STRATA_OK) {
        rc = copy_out(w->blob, w->length, key, blob, length);
        exchange_keep(r, rank, w);
    } else
        st_log(rte->context, ST_LOG_ERROR, "rte_pmix", "no answer about rank %d's \"%s\": %s", rank, key,
               status == PMIX_ERR_TIMEOUT ? "it has not finished strata_init within rte_pmix_timeout seconds"
                                          : PMIx_Error_string(status));
    if (w)
        rte_pmix_wait_put(w);
    return rc;
}

/* What ranks published is fetched when it is needed, so a fence collects no data. But Slurm's tree of daemons, which it
 * takes for fences without data (SLURM_PMIX_FENCE), lets the ranks of one machine go on before those of another have
 * come (22.05); with data it takes its ring. */
static size_t fence_info(const struct rte_pmix *r, pmix_info_t *info)
{
    const bool collect = true;
    if (strncmp(r->me.nspace, "slurm.pmix.", strlen("slurm.pmix.")) != 0 || r->n_local == r->common.head.size)
        return 0;
    PMIX_INFO_LOAD(info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    return 1;
}

int rte_pmix_fence(struct st_rte *rte)
{
    pmix_info_t info;
    size_t n = fence_info(rte_pmix_self(rte), &info);
    return rte_pmix_status(PMIx_Fence(NULL, 0, n ? &info : NULL, n));
}

struct fence_call {
    void (*done)(void *arg, int rc);
    void *arg;
    pmix_info_t info; /* read until the fence ends */
};

static void fence_done(pmix_status_t rc, void *arg)
{
    struct fence_call call = *(struct fence_call *)arg;
    free(arg);
    call.done(call.arg, rte_pmix_status(rc));
}

int rte_pmix_fence_begin(struct st_rte *rte, void (*done)(void *arg, int rc), void *arg)
{
    struct fence_call *call = malloc(sizeof(*call));
    if (!call)
        return STRATA_ERR_NOMEM;
    *call = (struct fence_call){.done = done, .arg = arg};
    size_t n = fence_info(rte_pmix_self(rte), &call->info);
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, n ? &call->info : NULL, n, fence_done, call);
    if (rc == PMIX_OPERATION_SUCCEEDED) { /* alone in the job: PMIx does not call back */
        fence_done(PMIX_SUCCESS, call);
        return STRATA_OK;
    }
    if (rc != PMIX_SUCCESS)
        free(call);
    return rte_pmix_status(rc);
}

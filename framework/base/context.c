/* A context's life: what strata_init builds, in order, and strata_finalize takes down in the reverse one. */
#include "framework/base/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/rte.h>
#include "channel/channels.h"
#include "framework/base/fence.h"
#include "framework/base/idle_policy.h"
#include "framework/base/job_report.h"
#include "framework/base/live.h"
#include "framework/base/run_queue.h"
#include "framework/base/select.h"
#include "framework/bml/bml_select.h"
#include "framework/btl/btl_select.h"
#include "framework/coll/coll_select.h"
#include "framework/mpool/mpool_select.h"
#include "framework/pml/comm.h"
#include "framework/pml/pml_select.h"
#include "framework/pml/report.h"
#include "framework/rcache/rcache_select.h"
#include "framework/rte/rte_nodes.h"
#include "framework/rte/rte_select.h"
#include "framework/worker/worker.h"

#define ERROR_BYTES 1280

/* Takes what the program passed; later versions of the structs may be longer, earlier ones shorter. */
static int context_take_config(strata_t *s, const strata_config_t *config)
{
    if (config->thread_level != STRATA_THREAD_SINGLE && config->thread_level != STRATA_THREAD_MULTIPLE)
        return st_fail(s, STRATA_ERR_ARG, "strata_init: thread_level %d does not exist", (int)config->thread_level);
    if ((config->n_settings && !config->settings) || (config->n_command_line && !config->command_line))
        return st_fail(s, STRATA_ERR_ARG, "strata_init: settings announced and not passed");
    s->thread_level = config->thread_level;
    const strata_host_t *h = config->host;
    if (!h)
        return STRATA_OK;
    if (h->size < offsetof(strata_host_t, is_local) || h->size > sizeof(*h))
        return st_fail(s, STRATA_ERR_ARG, "strata_init: host table of %zu bytes, expected up to %zu", h->size,
                       sizeof(*h));
    memcpy(&s->host_copy, h, h->size);
    s->host_copy.size = sizeof(*h);
    h = &s->host_copy;
    if (!h->put || !h->get || !h->fence || h->n_ranks < 1 || h->rank < 0 || h->rank >= h->n_ranks)
        return st_fail(s, STRATA_ERR_ARG, "strata_init: host table without put, get or fence, or with rank %d of %d",
                       h->rank, h->n_ranks);
    s->host = h;
    return STRATA_OK;
}

/* Ranks on this machine, counted no further than `enough`. An embedder that has no list of them is asked about a
 * bounded number of ranks: a start must not cost time or memory per rank of the world. */
static unsigned context_count_local(const strata_t *s, unsigned enough)
{
    struct st_rte *rte = s->rte;
    int listed = 1;
    if ((unsigned)rte->size <= enough)
        return (unsigned)rte->size;
    if (!s->host || s->host->local_ranks) {
        rte->ops->local_ranks(rte, &listed);
        return listed < 1 ? 1u : (unsigned)listed;
    }
    unsigned n = 0;
    for (int r = 0; r < rte->size && r < 4096 && n <= enough; r++)
        n += rte->ops->is_local(rte, r);
    return n;
}

static int context_resolve_idle(strata_t *s)
{
    unsigned processors = st_idle_processors(), local = context_count_local(s, processors);
    st_idle_policy(s->base->spin, s->base->yield, local, processors, &s->spin_limit, &s->yield_limit);
    if (local <= processors || s->base->spin >= 0)
        return STRATA_OK;
    s->run_queue = malloc(sizeof(*s->run_queue));
    if (!s->run_queue)
        return STRATA_ERR_NOMEM;
    st_run_queue_init(s->run_queue, &st_run_queue_linux);
    return STRATA_OK;
}

/* After the policy of waiting: nodes share the machine's processors. */
static int context_divide(strata_t *s)
{
    if (*s->base->node && s->host && s->host->n_ranks == STRATA_RANKS_OPEN)
        return st_fail(s, STRATA_ERR_PARAM, "mca_base_node: not where an embedder's ranks come and go");
    int rc = st_rte_divide(s->rte, s->base->node);
    return rc == STRATA_OK ? rc
                           : st_fail(s, rc, "mca_base_node takes numbers of ranks, such as 4 or 3,5, not `%s': %s",
                                     s->base->node, strata_strerror(rc));
}

static int context_make_world(strata_t *s)
{
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 0, .rank = s->rte->rank, .n_ranks = s->rte->size};
    int rc = st_comm_make(s, &spec, &s->world);
    return rc == STRATA_OK ? rc
                           : st_fail(s, rc, "the world's matching context cannot be made: %s", strata_strerror(rc));
}

/* Undoes what has been built, however far it got. */
static void context_tear_down(strata_t *s)
{
    st_live_stop(s);
    st_job_report_stop(s);
    if (s->world)
        st_comm_destroy(s->world);
    st_coll_close(s);
    if (s->pml)
        s->pml->ops->close(s->pml);
    s->pml = NULL;
    free(s->buffer);
    st_channels_destroy(s);
    if (s->worker)
        st_worker_stop(s->worker);
    if (s->bml)
        s->bml->ops->close(s->bml);
    s->bml = NULL;
    st_mem_free_all(s);
    st_btl_close_all(s);
    st_rcache_close(s);
    st_mpool_close(s);
    /* The rte and the BTLs may report a dead peer until they are closed. */
    if (s->rte)
        s->rte->ops->close(s->rte);
    s->rte = NULL;
    if (s->worker)
        st_worker_destroy(s->worker);
    s->worker = NULL;
    s->base = NULL;
    if (s->mca && !s->mca_lent)
        st_mca_destroy(s->mca);
    st_account_end(&s->account);
    free(s->run_queue);
    free(s);
}

static int context_build(strata_t *s, const strata_config_t *config)
{
    char err[ERROR_BYTES] = "";
    int rc = context_take_config(s, config);
    if (rc != STRATA_OK)
        return rc;
    if (!s->mca && (rc = st_mca_create(config, ST_MCA_NEEDED, &s->mca, err, sizeof(err))) != STRATA_OK)
        return st_fail(s, rc, "%s", err);
    s->base = st_mca_base_config(s->mca);
    st_account_loaded(&s->account, s->base->account_memory);
    struct st_account_mark launcher;
    st_account_enter(s, ST_ACCOUNT_PAGES, &launcher);
    if ((rc = st_rte_select(s)) != STRATA_OK)
        return rc;
    st_account_leave(s, &launcher);
    if ((rc = context_resolve_idle(s)) != STRATA_OK || (rc = context_divide(s)) != STRATA_OK)
        return rc;
    if ((rc = st_mpool_select(s)) != STRATA_OK)
        return rc;
    /* BTLs are its clients from their open to their close; the first one that asks for it has it chosen. */
    if ((rc = st_rcache_prepare(s)) != STRATA_OK || (rc = st_btl_select(s)) != STRATA_OK)
        return rc;
    st_rcache_settle(s);
    if (s->rte->ops->commit && (rc = s->rte->ops->commit(s->rte)) != STRATA_OK)
        return st_fail(s, rc, "publishing this rank's addresses failed: %s", strata_strerror(rc));
    if ((rc = st_bml_select(s)) != STRATA_OK || (rc = st_worker_create(s, s->bml, &s->worker)) != STRATA_OK ||
        (rc = st_pml_select(s)) != STRATA_OK || (rc = st_coll_select(s)) != STRATA_OK ||
        (rc = st_channels_create(s)) != STRATA_OK)
        return rc;
    if (!s->mca_lent) /* who lends it shows the record himself */
        st_mca_say_skipped(s, s->mca);
    st_worker_watch(s->worker);
    rc = context_make_world(s);
    st_account_ready(&s->account);
    if (rc == STRATA_OK) {
        st_job_report_start(s);
        st_live_start(s);
    }
    return rc;
}

/* Makes a context from a checked config, with a component system of its own unless one is lent to it. On failure
 * `error`, of ERROR_BYTES, says why. */
static int context_make(const strata_config_t *config, struct st_mca *lent, char *error, strata_t **out)
{
    error[0] = '\0';
    strata_t *s = calloc(1, sizeof(*s));
    if (!s) {
        snprintf(error, ERROR_BYTES, "%s", strata_strerror(STRATA_ERR_NOMEM));
        return STRATA_ERR_NOMEM;
    }
    st_account_begin(&s->account, config);
    s->mca = lent;
    s->mca_lent = lent != NULL;
    s->error = error;
    s->error_size = ERROR_BYTES;
    int rc = context_build(s, config);
    if (rc == STRATA_OK) {
        s->error = NULL;
        *out = s;
        return STRATA_OK;
    }
    st_fail(s, rc, "%s", strata_strerror(rc));
    if (!lent && !(config->error_text && config->error_text_size > 0))
        st_log(s, ST_LOG_ERROR, NULL, "%s", error);
    context_tear_down(s);
    return rc;
}

static int context_take_whole(const strata_config_t *config, strata_config_t *c)
{
    if (config && (config->size < offsetof(strata_config_t, error_text) || config->size > sizeof(*c)))
        return STRATA_ERR_ARG;
    if (config)
        memcpy(c, config, config->size);
    return STRATA_OK;
}

int strata_init(const strata_config_t *config, strata_t **out)
{
    strata_config_t c = STRATA_CONFIG_INIT;
    char error[ERROR_BYTES];
    if (!out || context_take_whole(config, &c) != STRATA_OK)
        return STRATA_ERR_ARG;
    int rc = context_make(&c, NULL, error, out);
    if (rc != STRATA_OK && c.error_text && c.error_text_size > 0)
        snprintf(c.error_text, c.error_text_size, "%s", error);
    return rc;
}

int st_context_try(const strata_config_t *config, struct st_mca *mca, void (*look)(void *arg, strata_t *s), void *arg,
                   char *err, size_t err_size)
{
    strata_config_t c = STRATA_CONFIG_INIT;
    char error[ERROR_BYTES];
    strata_t *s;
    int rc = context_take_whole(config, &c);
    if (rc == STRATA_OK)
        rc = context_make(&c, mca, error, &s);
    else
        snprintf(error, sizeof(error), "a configuration of %zu bytes", config->size);
    if (rc == STRATA_OK) {
        if (look)
            look(arg, s);
        return strata_finalize(s);
    }
    if (err && err_size > 0)
        snprintf(err, err_size, "%s", error);
    return rc;
}

int strata_finalize(strata_t *s)
{
    if (!s)
        return STRATA_ERR_ARG;
    st_worker_drain(s->worker);
    int rc = st_fence(s);
    st_report_transports(s);
    st_job_report_end(s);
    context_tear_down(s);
    return rc;
}

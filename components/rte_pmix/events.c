/* Deaths of peers, as the launcher reports them. */
#include "rte_pmix.h"

#include <stdio.h>
#include <stdlib.h>

/* The handler's argument. Where the launcher has not answered that it is registered, or is no more, it may still come:
 * then this stays, without a context. */
struct rte_pmix_watch {
    pthread_mutex_t lock;
    struct rte_pmix *r; /* NULL: closed */
    pmix_info_t info;   /* PMIx reads it later, on its own thread */
};

static pmix_status_t codes[] = {
    PMIX_ERR_PROC_ABORTED,      PMIX_ERR_PROC_ABORTED_BY_SIG, PMIX_ERR_PROC_REQUESTED_ABORT,
    PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_KILLED_BY_CMD,
};

static void events_tell(struct rte_pmix_watch *watch, const pmix_proc_t *who, const char *text)
{
    pthread_mutex_lock(&watch->lock);
    struct rte_pmix *r = watch->r;
    if (r && PMIX_CHECK_NSPACE(who->nspace, r->me.nspace) && who->rank < (pmix_rank_t)r->common.head.size &&
        who->rank != r->me.rank) {
        char reason[256];
        snprintf(reason, sizeof(reason), "%s", text);
        r->watcher(r->watcher_arg, (int)who->rank, reason);
    }
    pthread_mutex_unlock(&watch->lock);
}

/* On PMIx's thread. The affected process is named in the information, or is the source itself. */
static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t n_info,
                     pmix_info_t *results, size_t n_results, pmix_event_notification_cbfunc_fn_t next, void *next_arg)
{
    (void)id, (void)results, (void)n_results;
    struct rte_pmix_watch *watch = NULL;
    const pmix_proc_t *who = source;
    const char *text = NULL;
    for (size_t i = 0; i < n_info; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_RETURN_OBJECT))
            watch = info[i].value.data.ptr;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC)
            who = info[i].value.data.proc;
        else if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_TEXT_MESSAGE) && info[i].value.type == PMIX_STRING)
            text = info[i].value.data.string;
    }
    if (watch && who)
        events_tell(watch, who, text ? text : PMIx_Error_string(status));
    if (next)
        next(PMIX_SUCCESS, NULL, 0, NULL, NULL, next_arg);
}

static void events_registered(pmix_status_t rc, size_t handler, void *arg)
{
    struct rte_pmix_wait *w = arg;
    w->handler = handler;
    rte_pmix_wait_answer(w, rc);
}

static struct rte_pmix_watch *watch_create(struct rte_pmix *r)
{
    struct rte_pmix_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return NULL;
    pthread_mutex_init(&watch->lock, NULL);
    watch->r = r;
    PMIX_INFO_LOAD(&watch->info, PMIX_EVENT_RETURN_OBJECT, watch, PMIX_POINTER);
    return watch;
}

static void watch_destroy(struct rte_pmix_watch *watch)
{
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

void rte_pmix_watch(struct st_rte *rte, void (*fn)(void *arg, int rank, const char *reason), void *arg)
{
    struct rte_pmix *r = rte_pmix_self(rte);
    struct rte_pmix_wait *w = r->registering ? NULL : rte_pmix_wait_create();
    if (!w)
        return;
    r->watcher = fn;
    r->watcher_arg = arg;
    r->watch = watch_create(r);
    pmix_status_t rc = r->watch ? PMIx_Register_event_handler(codes, sizeof(codes) / sizeof(codes[0]), &r->watch->info,
                                                              1, on_event, events_registered, w)
                                : PMIX_ERR_NOMEM;
    if (rc != PMIX_SUCCESS)
        rte_pmix_wait_answer(w, rc);
    r->registering = w; /* the answer is only needed to unregister */
}

static void events_unregistered(pmix_status_t rc, void *arg)
{
    rte_pmix_wait_answer(arg, rc);
}

/* Whether the handler has been taken back, or was never registered. */
static bool events_unregister(const struct rte_pmix *r)
{
    pmix_status_t rc = rte_pmix_wait_for(r->registering, r->config->timeout_s);
    if (rc != PMIX_SUCCESS)
        return rc != PMIX_ERR_TIMEOUT;
    struct rte_pmix_wait *w = rte_pmix_wait_create();
    if (!w)
        return false;
    rc = PMIx_Deregister_event_handler(r->registering->handler, events_unregistered, w);
    if (rc != PMIX_SUCCESS)
        rte_pmix_wait_answer(w, rc);
    rc = rte_pmix_wait_for(w, r->config->timeout_s);
    rte_pmix_wait_put(w);
    return rc == PMIX_SUCCESS;
}

/* From here on the handler tells nothing. */
void rte_pmix_unwatch(struct rte_pmix *r)
{
    if (!r->registering)
        return;
    if (r->watch) {
        pthread_mutex_lock(&r->watch->lock);
        r->watch->r = NULL;
        pthread_mutex_unlock(&r->watch->lock);
    }
    if (events_unregister(r) && r->watch)
        watch_destroy(r->watch);
    r->watch = NULL;
    rte_pmix_wait_put(r->registering);
    r->registering = NULL;
}

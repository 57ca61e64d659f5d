/* What the files of rte_pmix share. */
#ifndef RTE_PMIX_H
#define RTE_PMIX_H

#include <pmix.h>
#include <strata/sdk/rank_table.h>
#include <strata/sdk/rte.h>
#include "card.h"

struct rte_pmix_config {
    int64_t timeout_s;
};

struct rte_pmix {
    struct st_rte_common common; /* its lock guards card, committed, cards */
    const struct rte_pmix_config *config;
    const struct st_component *component;
    pmix_proc_t me;
    char job_id[PMIX_MAX_NSLEN + 24];
    char key[32];        /* PMIx key of this context's card */
    char peer_host[256]; /* answer of host_of */
    int *local;          /* ascending */
    int n_local;
    struct rte_pmix_card card;
    bool committed;
    struct st_rank_table cards; /* of others: struct rte_pmix_card, kept once fetched */
    /* events.c */
    void (*watcher)(void *arg, int rank, const char *reason);
    void *watcher_arg;
    struct rte_pmix_wait *registering;
    struct rte_pmix_watch *watch;
};

static inline struct rte_pmix *rte_pmix_self(struct st_rte *rte)
{
    return (struct rte_pmix *)rte;
}

/* ---- session.c: the process's connection to its PMIx server ---- */

/* Joins the job: PMIx_Init for the process's first context; PMIx_Finalize when the process ends and none of its
 * contexts is open. *instance numbers the contexts of this process from 0; contexts of different processes belong
 * together when their numbers agree, that is when each process makes its contexts in the same order. */
pmix_status_t rte_pmix_session_join(pmix_proc_t *me, unsigned *instance);
/* A context that joined is closed. */
void rte_pmix_session_leave(void);
/* True when a PMIx launcher started this process: asked of the environment, so that nothing is tried without one. */
bool rte_pmix_launched(void);

/* ---- exchange.c ---- */
int rte_pmix_put(struct st_rte *rte, const char *key, const void *blob, size_t length);
int rte_pmix_commit(struct st_rte *rte);
int rte_pmix_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *length);
int rte_pmix_fence(struct st_rte *rte);
int rte_pmix_fence_begin(struct st_rte *rte, void (*done)(void *arg, int rc), void *arg);
int rte_pmix_status(pmix_status_t rc); /* PMIx status to ours */
void rte_pmix_cards_free(struct rte_pmix *r);

/* ---- local.c ---- */

/* Parses "0,3-5,7" into an ascending array without repeats; ranks outside 0..size-1 are dropped, `me` is added. */
int rte_pmix_parse_ranks(const char *text, int size, int me, int **out, int *n);

/* ---- events.c ---- */
void rte_pmix_watch(struct st_rte *rte, void (*fn)(void *arg, int rank, const char *reason), void *arg);
void rte_pmix_unwatch(struct rte_pmix *r);

/* ---- wait.c: an answer that PMIx's own thread delivers ---- */
struct rte_pmix_wait {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int refs; /* the waiter and PMIx: who lets go last frees, so that a late answer finds its memory */
    bool done;
    pmix_status_t rc;
    size_t handler;
    void *blob; /* copy of a byte object; owned by the wait until taken */
    size_t length;
};
struct rte_pmix_wait *rte_pmix_wait_create(void);
void rte_pmix_wait_put(struct rte_pmix_wait *w);
/* PMIx's side: publishes the answer and lets go. */
void rte_pmix_wait_answer(struct rte_pmix_wait *w, pmix_status_t rc);
/* Waits up to timeout_s seconds (0: for ever); PMIX_ERR_TIMEOUT when nothing came. */
pmix_status_t rte_pmix_wait_for(struct rte_pmix_wait *w, int64_t timeout_s);
/* The same for at most *left_ms, of which it takes what it has waited; NULL: for ever. By looks of a tenth of a second,
 * of which each counts for no more: on a busy machine, where this process may get no processor for seconds, the others
 * take as many times as long for what is waited for. */
pmix_status_t rte_pmix_wait_counted(struct rte_pmix_wait *w, int64_t *left_ms);

#endif

/* Private to the worker: its whole struct, and what context.c calls. */
#ifndef ST_WORKER_WORKER_H
#define ST_WORKER_WORKER_H

#include <strata/sdk/worker.h>

/* A module whose poll is costly. */
struct worker_rare {
    struct st_btl *btl;
    uint64_t last_ns, next_ns; /* when something came last; not before this, or 0: at once */
    uint32_t round;
};

/* A failure on its way from who has noticed it to the clients, and from there to log and embedder. */
struct worker_failure {
    struct worker_failure *next;
    int rank, rc;
    char reason[128];
};

struct worker {
    struct st_worker head;
    struct {
        const struct st_client *row;
        void *arg;
    } clients[ST_AM_COUNT];
    struct st_worker_poll *poll; /* n_poll of them; the one behind the last is zero */
    struct worker_rare *rare;
    uint32_t n_poll, n_rare;
    pthread_mutex_t alarm_mutex;      /* guards `failures`; the last lock that is taken */
    struct worker_failure *failures;  /* recorded */
    struct worker_failure *to_report; /* the clients know; under the lock */
    int *told;                        /* ranks that the clients were told of; under the lock */
    size_t n_told;
    _Atomic(bool) any_reported;
};

static inline struct worker *worker_of(struct st_worker *w)
{
    return (struct worker *)w;
}

/* worker.c */
int st_worker_create(strata_t *s, struct st_bml *bml, struct st_worker **out);
void st_worker_destroy(struct st_worker *w);
size_t st_worker_bytes(const struct st_worker *w);

/* poll.c */
int worker_poll_create(struct worker *w);
void worker_poll_destroy(struct worker *w);

/* failure.c */
/* The BTLs and the rte report from now on; the worker has to outlive the rte. */
void st_worker_watch(struct st_worker *w);
int worker_failures_handle(struct worker *w); /* with the lock held */
void worker_failures_destroy(struct worker *w);
/* Whether a failure has been reported to log and embedder; any thread. */
bool st_worker_any_failed(const struct st_worker *w);

/* progress.c */
void worker_outside(struct worker *w);

#endif

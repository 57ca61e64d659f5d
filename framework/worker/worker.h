/* Private to the worker: its whole struct, and what context.c calls. */
#ifndef ST_WORKER_WORKER_H
#define ST_WORKER_WORKER_H

#include <strata/sdk/block_cache.h>
#include <strata/sdk/rank_table.h>
#include <strata/sdk/worker.h>
#include "framework/worker/sleep.h"

/* The worker's own reasons to have its round attended to: pending work; lanes of which a path has failed; threads that
 * sleep, which are to hear of what the round has done. */
#define WORKER_PENDING (ST_ATTEND_WORK << ST_AM_LANE)
#define WORKER_MENDING (ST_ATTEND_LOOK << ST_AM_LANE)
#define WORKER_ASLEEP  (ST_ATTEND_LOOK << ST_AM_COUNT)
/* This process has woken another, which may be waiting for this thread's processor: st_worker_woke. */
#define WORKER_WOKE (ST_ATTEND_WORK << ST_AM_COUNT)
/* strata-run asks for a report. */
#define WORKER_ASKED (ST_ATTEND_LOOK << (ST_AM_COUNT + 1))
_Static_assert((uint32_t)WORKER_ASKED < (uint32_t)ST_ATTEND_FAILURE, "behind the bits of the clients");
/* Work of a client that no transport announces: nobody sleeps. */
#define WORKER_NO_SLEEP ((ST_ATTEND_LOOK - ST_ATTEND_WORK) & ~WORKER_PENDING)

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
    } clients[ST_AM_CLIENTS];
    uint32_t n_clients;
    struct st_rank_table peers; /* struct st_peer by job rank */
    size_t n_peers;
    struct st_node pending; /* peers with work */
    struct st_node mending; /* lanes of which a path does not work, or whose peer is to be told that it has failed */
    uint32_t mend_round;
    uint64_t mended_ns;               /* last look at `mending`; 0: nothing is there */
    size_t lane_bytes;                /* lanes and what they keep */
    struct st_block_cache lane_spare; /* blocks for what they will keep */
    size_t landing_bytes;             /* both ends' landing rings */
    uint64_t n_protocol_errors;
    struct st_worker_poll *poll; /* n_poll of them; the one behind the last is zero */
    struct worker_rare *rare;
    uint32_t n_poll, n_rare;
    struct worker_sleep sleep;
    struct worker_crowd crowd;
    pthread_mutex_t alarm_mutex;      /* guards `failures`; the last lock that is taken */
    struct worker_failure *failures;  /* recorded */
    struct worker_failure *to_report; /* the clients know; under the lock */
    _Atomic(bool) any_reported;
    _Atomic(bool) asked;       /* a report is due, outside the lock */
    _Atomic(bool) woke;        /* the processor is to be given up once, outside the lock */
    _Atomic(uint64_t) busy_ns; /* until then the machine counts as busy, if it does */
};

static inline struct worker *worker_of(struct st_worker *w)
{
    return (struct worker *)w;
}

/* worker.c */
int st_worker_create(strata_t *s, struct st_bml *bml, struct st_worker **out);
void st_worker_destroy(struct st_worker *w);
/* Nothing that the BTLs bring or report is taken any more: before the bml, whose peers the worker knows, is closed. */
void st_worker_stop(struct st_worker *w);
/* strata-run or strata-info --live asks for a report: st_job_report_answer and st_live_answer are called by the next
 * round of progress, outside the lock. Any thread. */
void st_worker_ask(struct st_worker *w);
/* Peers, lanes and the rest. */
void st_worker_mem_report(const struct st_worker *w, st_mem_line_fn line, void *arg);

/* poll.c */
int worker_poll_create(struct worker *w);
void worker_poll_destroy(struct worker *w);

/* busy.c; any thread */
void worker_yield(struct worker *w);                   /* once, unless the machine is busy */
void worker_was_long(struct worker *w, uint64_t took); /* a yield */
void worker_busy_look(struct worker *w);               /* whether it still is */

/* failure_record.c */
struct worker_failure *worker_failures_take(struct worker *w); /* what has been recorded, oldest first; to be freed */

/* failure.c */
/* The BTLs and the rte report from now on; the worker has to outlive the rte. */
void st_worker_watch(struct st_worker *w);
int worker_failures_handle(struct worker *w); /* with the lock held */
/* Polls all modules until they are quiet: messages sent before a peer or a path failed may not have been polled when
 * the failure is reported, and no receive for which there is one may fail. From progress, outside of the modules. */
void worker_take_what_came(const struct worker *w);
void worker_failures_destroy(struct worker *w);
/* Whether a failure has been reported to log and embedder; any thread. */
bool st_worker_any_failed(const struct st_worker *w);

/* peer.c */
int worker_peers_create(struct worker *w);
void worker_peers_destroy(struct worker *w);
void worker_peers_forget(struct worker *w, enum st_am am);        /* the client has left */
void worker_peer_changed(struct worker *w, struct st_peer *peer); /* tells the clients */

/* notify.c */
void worker_notice_take(void *arg, const struct st_frag *frag); /* st_deliver_fn of ST_AM_NOTICE; arg: the worker */

/* pending.c; all with the lock held */
void worker_pending_add(struct worker *w, struct st_peer *peer);  /* it is looked at in the next round */
int worker_pending_run(struct worker *w);                         /* everything that can go; events */
void worker_pending_drop(struct worker *w, struct st_peer *peer); /* the peer has failed */

#endif

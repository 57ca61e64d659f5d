/* A worker's life, and its clients. */
#define _GNU_SOURCE 1
#include "framework/worker/lane.h"

#include <stdlib.h>

#include <strata/sdk/idle.h>
#include "framework/base/context.h"

_Static_assert(offsetof(struct st_worker, mutex) == 64, "what each poll reads is one line, the lock begins another");

#define MOST_SPIN          4096u
#define MOST_SPIN_EMBEDDED 256u /* an embedder waits for its turn only after these */

/* Held for less than it takes to fall asleep: who finds it taken spins for a while. */
static void worker_mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex, &kind);
    pthread_mutexattr_destroy(&kind);
}

int st_worker_create(strata_t *s, struct st_bml *bml, struct st_worker **out)
{
    struct worker *w = NULL;
    struct st_idle idle;
    if (posix_memalign((void **)&w, 64, sizeof(*w)) != 0)
        return STRATA_ERR_NOMEM;
    *w = (struct worker){.head = {.context = s, .bml = bml, .threaded = st_thread_multiple(s)},
                         .lane_spare = {.most = LANE_SPARE_BYTES, .align = LANE_ALIGN, .skew = LANE_SKEW},
                         .sleep.event_fd = -1};
    worker_mutex_init(&w->head.mutex);
    pthread_mutex_init(&w->alarm_mutex, NULL);
    worker_crowd_create(w);
    st_idle_begin(&idle, s);
    w->head.spin = idle.spin_limit < MOST_SPIN ? idle.spin_limit : MOST_SPIN;
    if (idle.embedder && w->head.spin > MOST_SPIN_EMBEDDED)
        w->head.spin = MOST_SPIN_EMBEDDED;
    int rc = worker_poll_create(w);
    if (rc == STRATA_OK)
        rc = worker_sleep_create(w);
    if (rc == STRATA_OK)
        rc = worker_peers_create(w);
    if (rc != STRATA_OK) {
        st_worker_destroy(&w->head);
        return rc;
    }
    for (size_t i = 0; i < bml->n_btls; i++) {
        bml->btls[i]->am[ST_AM_LANE].fn = lane_take;
        bml->btls[i]->am[ST_AM_LANE].arg = w;
        bml->btls[i]->am[ST_AM_NOTICE].fn = worker_notice_take;
        bml->btls[i]->am[ST_AM_NOTICE].arg = w;
    }
    *out = &w->head;
    return STRATA_OK;
}

void st_worker_destroy(struct st_worker *head)
{
    struct worker *w = worker_of(head);
    worker_failures_destroy(w);
    for (int64_t i = 0; (i = st_worker_peer_next(head, i)) >= 0; i++)
        lane_destroy(w, st_worker_peer_known(head, (int)i));
    worker_peers_destroy(w);
    st_block_cache_clear(&w->lane_spare);
    worker_poll_destroy(w);
    worker_sleep_destroy(w);
    worker_crowd_destroy(w);
    pthread_mutex_destroy(&w->head.mutex);
    pthread_mutex_destroy(&w->alarm_mutex);
    free(w);
}

void st_worker_mem_report(const struct st_worker *head, st_mem_line_fn line, void *arg)
{
    const struct worker *w = (const struct worker *)head;
    const strata_mem_line_t lines[] = {
        {.component = "worker",
         .category = "peers",
         .bytes = w->n_peers * sizeof(struct st_peer) + st_rank_table_bytes(&w->peers)},
        {.component = "worker",
         .category = "lanes",
         .bytes = w->lane_bytes + w->lane_spare.bytes + w->lane_spare.slack},
        {.component = "worker", .category = "landing rings", .bytes = w->landing_bytes},
        {.component = "worker",
         .category = "other",
         .bytes = sizeof(*w) + (head->bml->n_btls + 1) * (sizeof(*w->poll) + sizeof(*w->rare))},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (lines[i].bytes)
            line(arg, &lines[i]);
}

int st_worker_join(struct st_worker *head, const struct st_client *client, void *arg)
{
    struct worker *w = worker_of(head);
    if ((unsigned)client->am >= ST_AM_CLIENTS || !client->deliver || w->clients[client->am].row)
        return STRATA_ERR_ARG;
    st_worker_lock(head);
    w->clients[client->am].arg = arg;
    w->clients[client->am].row = client;
    w->n_clients++;
    for (size_t i = 0; i < head->bml->n_btls; i++) {
        head->bml->btls[i]->am[client->am].fn = client->deliver;
        head->bml->btls[i]->am[client->am].arg = arg;
    }
    st_worker_unlock(head);
    return STRATA_OK;
}

/* Active messages for a client that has left, or for a worker that is stopped. */
static void worker_drop(void *arg, const struct st_frag *frag)
{
    (void)arg, (void)frag;
}

void st_worker_leave(struct st_worker *head, const struct st_client *client)
{
    struct worker *w = worker_of(head);
    if (w->clients[client->am].row != client)
        return;
    st_worker_lock(head);
    w->clients[client->am].row = NULL;
    w->n_clients--;
    for (size_t i = 0; i < head->bml->n_btls; i++)
        head->bml->btls[i]->am[client->am].fn = worker_drop;
    st_worker_calm(head, (uint32_t)(ST_ATTEND_WORK | ST_ATTEND_LOOK) << client->am);
    worker_peers_forget(w, client->am);
    st_worker_unlock(head);
}

static void worker_drop_failure(void *arg, int rank, int rc, const char *reason)
{
    (void)arg, (void)rank, (void)rc, (void)reason;
}
static void worker_drop_path(void *arg, struct st_btl_endpoint *ep, int rc, const char *reason)
{
    (void)arg, (void)ep, (void)rc, (void)reason;
}

void st_worker_stop(struct st_worker *w)
{
    for (size_t i = 0; i < w->bml->n_btls; i++) {
        struct st_btl *btl = w->bml->btls[i];
        for (unsigned am = 0; am < ST_AM_COUNT; am++)
            btl->am[am].fn = worker_drop;
        btl->peer_failed = worker_drop_failure;
        btl->path_failed = worker_drop_path;
    }
}

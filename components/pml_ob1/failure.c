/* Dead peers. Anyone may say that a peer has failed (a BTL in the middle of an op, the rte on a thread of its own):
 * that only records it. The next progress completes every request that depends on the peer with the error. */
#include <stdlib.h>
#include <stdio.h>
#include "ob1_inl.h"

#define QUIET_POLLS 64   /* in a row that find nothing: nothing is left */
#define MOST_POLLS  4096 /* others may go on sending */

void ob1_peer_failed(struct st_pml *head, int rank, int rc, const char *reason)
{
    struct ob1 *pml = (struct ob1 *)head;
    struct ob1_failure *f = malloc(sizeof(*f));

    if (!f || rank < 0 || rank >= pml->size) {
        free(f);
        return;
    }
    f->rank = rank;
    f->rc = rc == STRATA_OK ? STRATA_ERR_PEER : rc;
    snprintf(f->reason, sizeof(f->reason), "%s", reason ? reason : strata_strerror(f->rc));
    pthread_mutex_lock(&pml->alarm_mutex);
    f->next = pml->failures;
    pml->failures = f;
    pthread_mutex_unlock(&pml->alarm_mutex);
    /* Pairs with the acquire in ob1_attend: who sees the count finds the entry. */
    atomic_fetch_add_explicit(&pml->attention, OB1_ATTEND_FAILURE, memory_order_release);
}

static void drop_queues(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    struct st_node *n;

    while ((n = st_list_pop(&peer->control)) != NULL)
        st_slab_put(&pml->controls, ST_CONTAINER(n, struct ob1_control, work.node));
    while ((n = st_list_pop(&peer->first)) != NULL) {
        struct ob1_req *req = ST_CONTAINER(n, struct ob1_req, work.node);
        ob1_req_fail(pml, req, rc);
    }
}

/* Requests whose name is on the wire: sends that wait for an answer, receives under way, puts that were asked for. */
static void fail_ids(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    for (uint32_t i = 0; i < pml->ids.n; i++) {
        struct ob1_id_slot slot = pml->ids.slots[i];
        if (slot.kind == OB1_ID_PUT) {
            struct ob1_piece *piece = slot.object;
            if (piece->task->peer == peer)
                ob1_put_answered(pml, piece, rc, 0);
        } else if (slot.kind != OB1_ID_FREE) {
            struct ob1_req *req = slot.object;
            if (req->peer == peer && !req->failed)
                ob1_req_fail(pml, req, rc);
        }
    }
}

/* Streams that were not all sent, and transfers that were waiting for their turn: these see that their request has
 * failed and retire. */
static void fail_queued(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    struct st_node *n;

    while ((n = st_list_pop(&peer->rest)) != NULL) {
        struct ob1_req *req = ST_CONTAINER(n, struct ob1_req, work.node);
        ob1_req_fail(pml, req, rc);
    }
    while ((n = st_list_pop(&peer->bulk)) != NULL) {
        struct ob1_task *t = ST_CONTAINER(n, struct ob1_task, work.node);
        if (!t->req->failed)
            ob1_req_fail(pml, t->req, rc);
        if (peer->bml && peer->bml->n_paths)
            t->work.run(pml, &t->work);
        else
            ob1_task_free(pml, t);
    }
}

static void fail_streams(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    for (struct st_node *n = peer->streams.next, *next; n != &peer->streams; n = next) {
        struct ob1_stream *st = ST_CONTAINER(n, struct ob1_stream, node);
        next = n->next;
        if (st->got >= st->total)
            continue; /* all of it is here: it can still be received */
        st->failed = rc;
        if (st->req)
            ob1_stream_attach(pml, st, st->req);
        else if (!st->announced)
            ob1_stream_drop(pml, st);
    }
}

static void fail_posted(struct ob1 *pml, struct ob1_comm *c, int job_rank, int rc)
{
    int rank = ob1_comm_rank_of(c, job_rank);
    struct ob1_posted *posted;

    while (rank >= 0 && (posted = ob1_match_any_posted(&c->match, rank)) != NULL) {
        struct ob1_req *req = ST_CONTAINER(posted, struct ob1_req, posted);
        ob1_match_cancel(&c->match, posted);
        ob1_status(req, rank, req->tag, rc, 0, 0);
        ob1_req_end(pml, req);
    }
}

static void fail_peer(struct ob1 *pml, const struct ob1_failure *f)
{
    struct ob1_peer *peer;

    if (ob1_peer_find(pml, f->rank, &peer) != STRATA_OK || peer->failed)
        return;
    peer->failed = f->rc;
    pml->n_failed++;
    st_list_remove(&peer->throttled);
    if (peer->link)
        ob1_link_peer_failed(peer->link);
    ob1_peer_fast(peer);
    drop_queues(pml, peer, f->rc);
    fail_ids(pml, peer, f->rc);
    fail_queued(pml, peer, f->rc);
    fail_streams(pml, peer, f->rc);
    for (uint32_t i = 0; pml->comms && i <= pml->comms_mask; i++)
        for (struct ob1_comm *c = pml->comms[i]; c; c = c->next)
            fail_posted(pml, c, f->rank, f->rc);
}

/* What a peer sent before its end may have come after our last poll, and the news of its end at once behind it: a
 * receive is not failed for which there is a message. A module may look at some of its queues now and then only. */
static void take_what_came(const struct ob1 *pml)
{
    int quiet = 0;

    for (int i = 0; i < MOST_POLLS && quiet < QUIET_POLLS; i++) {
        int n = 0;
        for (const struct ob1_poll *p = pml->poll; p->progress; p++)
            n += p->progress(p->btl);
        quiet = n ? 0 : quiet + 1;
    }
}

int ob1_handle_failures(struct ob1 *pml)
{
    struct ob1_failure *list, *f;
    int n = 0;

    take_what_came(pml);
    pthread_mutex_lock(&pml->alarm_mutex);
    list = pml->failures;
    pml->failures = NULL;
    pthread_mutex_unlock(&pml->alarm_mutex);
    while ((f = list) != NULL) {
        list = f->next;
        atomic_fetch_sub_explicit(&pml->attention, OB1_ATTEND_FAILURE, memory_order_relaxed);
        fail_peer(pml, f);
        f->next = pml->to_report;
        pml->to_report = f;
        pml->news = true;
        n++;
    }
    return n;
}

/* Outside the lock: the base logs and tells the embedder, who may call back. */
void ob1_report_failures(struct ob1 *pml)
{
    struct ob1_failure *list, *f;

    ob1_lock(pml);
    list = pml->to_report;
    pml->to_report = NULL;
    ob1_unlock(pml);
    while ((f = list) != NULL) {
        list = f->next;
        st_peer_failed(pml->head.context, f->rank, f->rc, f->reason);
        free(f);
    }
}

void ob1_failures_destroy(struct ob1 *pml)
{
    struct ob1_failure *f;

    while ((f = pml->failures) != NULL || (f = pml->to_report) != NULL) {
        if (f == pml->failures)
            pml->failures = f->next;
        else
            pml->to_report = f->next;
        free(f);
    }
}

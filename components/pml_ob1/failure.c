/* Dead peers: every request that depends on one is completed with the error. */
#include <limits.h>
#include "comm.h"
#include "match.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "recv.h"
#include "request.h"
#include "rndv.h"
#include "stream.h"
#include "task.h"

static void ob1_fail_firsts(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    struct st_node *n;

    while ((n = st_list_pop(&peer->first)) != NULL)
        ob1_req_fail(pml, ST_CONTAINER(n, struct ob1_req, work.node), rc);
    peer->shared->firsts &= (uint8_t) ~(1u << ST_AM_PML);
}

/* Requests whose name is on the wire: sends that wait for an answer, receives under way, puts that were asked for. */
static void ob1_fail_ids(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    for (uint32_t i = 0; i < pml->ids.n; i++) {
        struct st_wire_id slot = pml->ids.slots[i];
        if (slot.kind == OB1_ID_PUT) {
            struct ob1_piece *piece = slot.object;
            if (piece->task->peer != peer)
                continue;
            ob1_req_fail(pml, piece->task->req, rc); /* first: nothing more is asked for, whatever rc is */
            ob1_put_answered(pml, piece, rc, 0);
        } else if (slot.kind != ST_WIRE_ID_FREE) {
            struct ob1_req *req = slot.object;
            if (req->peer == peer && !req->failed)
                ob1_req_fail(pml, req, rc);
        }
    }
}

static void ob1_fail_streams(struct ob1 *pml, struct ob1_peer *peer, int rc)
{
    for (struct st_node *n = peer->streams.next, *next; n != &peer->streams; n = next) {
        struct ob1_stream *st = ST_CONTAINER(n, struct ob1_stream, node);
        next = n->next;
        if (st->got >= st->end)
            continue; /* all of it is here: it can still be received */
        ob1_stream_cut(st, rc);
        if (st->req)
            ob1_stream_attach(pml, st, st->req);
        else if (!st->announced)
            ob1_stream_drop(pml, st);
    }
}

static void ob1_fail_posted(struct ob1 *pml, struct ob1_comm *c, int job_rank, int rc)
{
    int rank = ob1_comm_rank_of(c, job_rank);
    struct ob1_posted *posted;

    while (rank >= 0 && (posted = ob1_match_any_posted(&c->match, rank, INT_MAX)) != NULL)
        ob1_recv_withdraw(pml, posted, rc);
}

/* Streams that were not all sent, and transfers that wait for their turn, are the worker's to drop, after this. */
void ob1_peer_failed(void *arg, struct st_peer *shared)
{
    struct ob1 *pml = arg;
    struct ob1_peer *peer = ob1_peer_of(shared);
    int rc = shared->failed;

    if (peer) {
        st_list_remove(&peer->throttled);
        ob1_peer_fast(peer);
        ob1_fail_firsts(pml, peer, rc);
        ob1_fail_ids(pml, peer, rc);
        ob1_fail_streams(pml, peer, rc);
    }
    for (uint32_t i = 0; pml->comms && i <= pml->comms_mask; i++)
        for (struct ob1_comm *c = pml->comms[i]; c; c = c->next)
            ob1_fail_posted(pml, c, shared->rank, rc);
}

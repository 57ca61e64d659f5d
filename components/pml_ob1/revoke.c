/* Revoked tags: of collectives whose communicator has lost a member. Receives with such tags end, and messages with
 * such tags are discarded, now and later, so that no sender waits for a receive that nobody posts. */
#include <limits.h>
#include <stdlib.h>
#include "comm.h"
#include "match.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "recv.h"
#include "request.h"
#include "revoke.h"
#include "stream.h"

/* A receive without room that frees itself takes the message, and takes over `stream`. Without memory a sender that
 * waits for an answer is told by the peer's failure. */
static void ob1_discard(struct ob1 *pml, struct ob1_peer *peer, const struct ob1_arrival *a, struct ob1_stream *stream)
{
    struct ob1_cpeer from = {.rank = a->src, .job_rank = a->job_rank, .peer = peer};
    struct ob1_req *req = ob1_req_make(pml, OB1_RECV, NULL, NULL);

    pml->n_dropped++;
    if (!req) {
        st_worker_peer_failed(pml->head.worker, a->job_rank, STRATA_ERR_NOMEM, "no memory to discard a message");
        return;
    }
    req->head.flags = ST_REQ_FREED;
    req->head.end_bits = OB1_END_FREED;
    ob1_data_contiguous(&req->data, NULL, 0);
    ob1_recv_begin(pml, req, &from, a, stream);
}

void ob1_discard_msg(struct ob1 *pml, struct ob1_peer *peer, struct ob1_msg *msg)
{
    struct ob1_stream *stream = msg->stream;

    msg->stream = NULL;
    ob1_discard(pml, peer, &msg->a, stream);
    ob1_msg_free(pml, msg);
}

static bool ob1_revoked_has(const struct ob1 *pml, uint32_t id, uint32_t *at)
{
    for (*at = 0; *at < pml->n_revoked; ++*at)
        if (pml->revoked[*at].id == id)
            return true;
    return false;
}

bool ob1_discard_late(struct ob1 *pml, const struct ob1_arrival *a)
{
    struct ob1_peer *peer;
    struct ob1_stream *stream = NULL;
    uint32_t at;

    if (!ob1_revoked_has(pml, a->context, &at) || a->tag >= pml->revoked[at].below ||
        ob1_peer_find(pml, a->job_rank, &peer) != STRATA_OK)
        return false;
    if (a->type == OB1_STREAM && (stream = ob1_stream_expect(pml, peer, a)) == NULL)
        return false;
    ob1_discard(pml, peer, a, stream);
    return true;
}

static void ob1_revoke_posted(struct ob1 *pml, struct ob1_comm *c)
{
    struct ob1_posted *posted;

    while ((posted = ob1_match_any_posted(&c->match, -1, c->revoked)) != NULL)
        ob1_recv_withdraw(pml, posted, STRATA_ERR_CANCELLED);
}

static void ob1_revoke_unexpected(struct ob1 *pml, struct ob1_comm *c)
{
    for (struct st_node *n = c->match.hidden.next, *next; n != &c->match.hidden; n = next) {
        struct ob1_unexp *u = ST_CONTAINER(n, struct ob1_unexp, node[OB1_ANY]);
        struct ob1_msg *msg = ST_CONTAINER(u, struct ob1_msg, unexp);
        next = n->next;
        if (msg->a.tag >= c->revoked)
            continue;
        ob1_match_remove(&c->match, u);
        ob1_discard_msg(pml, msg->from->peer, msg);
    }
}

void ob1_revoke(strata_comm_t *comm, int below)
{
    struct ob1_comm *c = (struct ob1_comm *)comm;
    struct ob1 *pml = ob1_of(comm);

    c->revoked = below;
    ob1_revoke_posted(pml, c);
    ob1_revoke_unexpected(pml, c);
}

void ob1_revoked_keep(struct ob1 *pml, const struct ob1_comm *c)
{
    struct ob1_revoked *more;

    if (c->revoked == INT_MIN)
        return;
    more = realloc(pml->revoked, (pml->n_revoked + 1) * sizeof(*more));
    if (!more)
        return; /* a sender that is late may wait until this process ends */
    pml->revoked = more;
    pml->revoked[pml->n_revoked++] = (struct ob1_revoked){c->head.id, c->revoked};
}

void ob1_revoked_forget(struct ob1 *pml, uint32_t id)
{
    uint32_t at;

    if (ob1_revoked_has(pml, id, &at))
        pml->revoked[at] = pml->revoked[--pml->n_revoked];
}

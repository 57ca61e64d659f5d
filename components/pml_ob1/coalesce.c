/* Short messages that wait for the same member go together as one fragment, so that what a fragment costs (a work
 * request, a credit, a packet, a completion) is paid once for many. They wait because the transport has no room, or
 * because it reports a burst (ST_BTL_CROWDED): then what nobody waits for is kept back until the next progress. */
#include "choose.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "request.h"
#include "send.h"
#include "wire.h"

#define MOST 8192u /* bytes of a fragment, unless longer messages go together: room for dozens of short ones */
/* Sequence numbers have 16 bits: a fragment and all that may overtake it stay within half their range, each a batch. */
#define MOST_MESSAGES 32u
_Static_assert((ST_BTL_OVERTAKING_MOST + 1) * MOST_MESSAGES <= 1u << 15, "16 bits tell them apart");

/* What is about to go: `n` requests from `first` on, in the queue of one peer, to one member. */
struct batch {
    struct st_node *first;
    uint32_t n, bytes;
};

static struct ob1_req *ob1_batch_request(struct st_node *n)
{
    return ST_CONTAINER(n, struct ob1_req, work.node);
}

static bool ob1_batch_may_join(const struct ob1_req *req)
{
    return req->protocol == OB1_P_EAGER && !req->failed && req->to != NULL && req->data.kind == STRATA_CONTIGUOUS &&
           req->data.length <= req->peer->coalesce;
}

bool ob1_holds(const struct ob1_req *req)
{
    return ob1_keeps_back(req->peer, st_peer_way(req->peer->shared, 0), req->data.length) && ob1_batch_may_join(req);
}

static uint32_t ob1_batch_bytes(const struct ob1_peer *peer)
{
    uint32_t most = 4 * (peer->coalesce + (uint32_t)sizeof(struct wire_part));
    uint32_t room = peer->announce ? peer->eager_limit : st_peer_way(peer->shared, 0)->btl->max_send;

    most = most > MOST ? most : MOST;
    return most < room ? most : room;
}

/* As many from the head of the queue as fit; fewer than two are not worth it. */
static struct batch ob1_batch_collect(struct ob1_peer *peer)
{
    struct batch b = {.first = peer->first.next};
    uint32_t most = ob1_batch_bytes(peer);
    const struct ob1_cpeer *to = NULL;

    for (struct st_node *n = b.first; n != &peer->first && b.n < MOST_MESSAGES; n = n->next) {
        const struct ob1_req *req = ob1_batch_request(n);
        if (!ob1_batch_may_join(req) || (to && req->to != to))
            break;
        uint32_t bytes = (uint32_t)sizeof(struct wire_part) + wire_padded(req->data.length);
        if (bytes > most - b.bytes)
            break;
        to = req->to;
        b.bytes += bytes;
        b.n++;
    }
    return b;
}

/* Straight into the transport's buffer, which asks for all at once. */
static ptrdiff_t ob1_batch_pack(void *user, size_t offset, void *dst, size_t length)
{
    const struct batch *b = user;
    struct st_node *n = b->first;
    char *at = dst;

    if (offset != 0 || length != b->bytes)
        return STRATA_ERR_ARG;
    for (uint32_t i = 0; i < b->n; i++, n = n->next) {
        const struct ob1_req *req = ob1_batch_request(n);
        struct wire_part part = {.tag = req->tag, .len = (uint32_t)req->data.length};
        uint32_t room = wire_padded(part.len);
        memcpy(at, &part, sizeof(part));
        at += sizeof(part);
        if (room != part.len)
            memset(at + room - WIRE_PART_ALIGN, 0, WIRE_PART_ALIGN);
        st_copy(at, req->data.u.buffer, part.len);
        at += room;
    }
    return (ptrdiff_t)length;
}

static int ob1_batch_send(struct ob1_peer *peer, struct batch *b)
{
    struct ob1_req *req = ob1_batch_request(b->first);
    struct st_btl_endpoint *ep = st_peer_way(peer->shared, 0);
    struct wire_batch h = {
        .type = OB1_BATCH, .seq = (uint16_t)req->to->send_seq, .context = req->context, .src = req->src};
    strata_data_t data = {
        .kind = STRATA_GENERIC, .length = b->bytes, .u.convert = {.pack = ob1_batch_pack, .unpack = NULL, .user = b}};
    struct st_payload all = {&data, 0, b->bytes};

    return ep->btl->ops->send_payload(ep, ST_AM_PML, &h, sizeof(h), &all);
}

int ob1_coalesce(struct ob1 *pml, struct ob1_peer *peer, uint32_t *busy)
{
    int sent = 0;

    while (!(*busy & 1u)) {
        struct batch b = ob1_batch_collect(peer);
        int rc = b.n < 2 ? STRATA_OK : ob1_batch_send(peer, &b);
        if (rc == STRATA_ERR_AGAIN)
            *busy |= 1u;
        if (b.n < 2 || rc != STRATA_OK)
            return sent; /* an error: each by itself, and with its own */
        pml->n_coalesced += b.n;
        pml->by_protocol[OB1_P_EAGER] += b.n;
        sent += (int)b.n;
        while (b.n-- > 0) {
            struct ob1_req *req = ob1_batch_request(st_list_pop(&peer->first));
            req->to->send_seq++;
            req->to->bytes_sent += req->data.length;
            ob1_send_moved(pml, req, req->data.length);
        }
    }
    return sent;
}

/* The hot half of the receiver: eager messages of a known peer in their turn. Three stages: ob1_want_take has the one
 * that a blocking receive is polling for; ob1_deliver_posted handles, without calling anything, a short message for the
 * receive that its bin, the one used last, has posted; ob1_deliver_warm any eager message in its turn. Everything else
 * goes to recv_slow.c. */
#include "comm.h"
#include "match.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "peer.h"
#include "recv.h"
#include "request.h"
#include "wire.h"

#define SHORT 64u /* st_copy is inline up to here */

/* The header, the context and the sender of an eager message, or false when it is for recv_slow.c. The sender is the
 * one heard last unless any_peer, and the tag is not checked then: the caller looks for it in a bin of an exact key. */
ST_INLINE bool ob1_deliver_look_up(struct ob1 *pml, const struct st_frag *frag, struct wire_match *h,
                                   struct ob1_comm **comm, struct ob1_cpeer **peer, bool any_peer)
{
    struct ob1_comm *c;
    struct ob1_cpeer *p;

    if (ST_UNLIKELY(frag->hdr_len < sizeof(*h)))
        return false;
    memcpy(h, frag->hdr, sizeof(*h)); /* once: the sender may be able to change it under us */
    c = pml->by_id[h->context % OB1_COMM_CACHE];
    if (ST_UNLIKELY(h->type != OB1_EAGER || !c || c->head.id != h->context))
        return false;
    p = c->from;
    if (ST_UNLIKELY(p->rank != h->src)) {
        if (!any_peer || (uint32_t)h->src >= (uint32_t)c->head.size ||
            (p = st_rank_table_get(&c->peers, (uint32_t)h->src)) == NULL)
            return false;
        c->from = p;
    }
    if (ST_UNLIKELY((uint16_t)p->recv_seq != h->seq || p->job_rank != frag->rank || (any_peer && h->tag == -1)))
        return false;
    *comm = c;
    *peer = p;
    return true;
}

static __attribute__((noinline)) void ob1_deliver_warm(struct ob1 *pml, const struct st_frag *frag)
{
    struct wire_match h;
    struct ob1_comm *c;
    struct ob1_cpeer *p;
    struct ob1_posted *posted;

    ob1_want_post(pml);
    if (!ob1_deliver_look_up(pml, frag, &h, &c, &p, true)) {
        ob1_deliver_slow(pml, frag);
        return;
    }
    p->recv_seq++;
    p->bytes_received += frag->len;
    posted = ob1_match_arrive(&c->match, h.src, h.tag);
    if (!posted) {
        ob1_deliver_unexpected(pml, c, p, frag);
        return;
    }
    struct ob1_req *req = ST_CONTAINER(posted, struct ob1_req, posted);
    size_t len = frag->len;
    if (ST_LIKELY(req->data.kind == STRATA_CONTIGUOUS && len <= req->data.length)) {
        st_copy(req->data.u.buffer, frag->data, len);
        ob1_status(req, h.src, h.tag, STRATA_OK, len, len);
        ob1_req_end(pml, req);
    } else {
        ob1_finish_eager(pml, req, frag->data, len, h.src, h.tag);
    }
    if (ST_UNLIKELY(c->n_held != 0))
        ob1_deliver_held(pml, c, p);
}

static __attribute__((noinline)) void ob1_deliver_posted(struct ob1 *pml, const struct st_frag *frag)
{
    struct wire_match h;
    struct ob1_comm *c;
    struct ob1_cpeer *p;

    if (ST_UNLIKELY(!ob1_deliver_look_up(pml, frag, &h, &c, &p, false))) {
        ob1_deliver_warm(pml, frag);
        return;
    }
    struct ob1_bin *b = c->match.last;
    struct st_node *n = b->posted.next;
    if (ST_UNLIKELY(b->key != ob1_key(h.src, h.tag) || n == &b->posted || (c->match.n_wild | c->n_held) != 0)) {
        ob1_deliver_warm(pml, frag);
        return;
    }
    struct ob1_req *req = ST_CONTAINER(n, struct ob1_req, posted.node);
    size_t len = frag->len;
    if (ST_UNLIKELY(len > SHORT || len > req->data.length || req->data.kind != STRATA_CONTIGUOUS ||
                    (req->head.end_bits & (uint8_t)~OB1_END_CALLBACK) != 0)) {
        ob1_deliver_warm(pml, frag);
        return;
    }
    p->recv_seq++;
    p->bytes_received += len;
    ob1_unlink(n);
    c->match.n_posted--;
    st_copy(req->data.u.buffer, frag->data, len);
    ob1_status(req, h.src, h.tag, STRATA_OK, len, len);
    if (req->head.end_bits)
        ob1_req_callback(ob1_of(req->head.comm), req, 0); /* and not pml, which would have to be kept until here */
    else
        atomic_store_explicit(&req->head.state, ST_REQ_COMPLETE, memory_order_release);
}

void ob1_deliver(void *arg, const struct st_frag *frag)
{
    struct ob1 *pml = arg;

    if (!ob1_want_take(&pml->want, frag))
        ob1_deliver_posted(pml, frag);
}

/* The hot half of the receiver: an eager message of a known peer, in its turn, for a posted receive into contiguous
 * memory that has room. Everything else goes to recv_slow.c. */
#include "ob1_inl.h"

enum st_deliver ob1_deliver(void *arg, const struct st_frag *frag)
{
    struct ob1 *pml = arg;
    struct wire_match h;
    struct ob1_comm *c;
    struct ob1_cpeer *p;
    struct ob1_posted *posted;

    if (OB1_UNLIKELY(frag->hdr_len < sizeof(h)))
        return ob1_deliver_slow(pml, frag);
    memcpy(&h, frag->hdr, sizeof(h)); /* once: the sender may be able to change it under us */
    c = pml->by_id[h.context % OB1_COMM_CACHE];
    if (OB1_UNLIKELY(h.type != OB1_EAGER || !c || c->head.id != h.context))
        return ob1_deliver_slow(pml, frag);
    p = c->from;
    if (OB1_UNLIKELY(p->rank != h.src)) {
        if ((uint32_t)h.src >= (uint32_t)c->head.size || (p = ob1_cpeer_get(c, h.src)) == NULL)
            return ob1_deliver_slow(pml, frag);
        c->from = p;
    }
    if (OB1_UNLIKELY(p->recv_seq != h.seq || p->job_rank != frag->rank || h.tag < 0))
        return ob1_deliver_slow(pml, frag);
    p->recv_seq++;
    posted = ob1_match_arrive(&c->match, h.src, h.tag);
    if (OB1_LIKELY(posted != NULL)) {
        struct ob1_req *req = ST_CONTAINER(posted, struct ob1_req, posted);
        size_t len = frag->len;
        if (OB1_LIKELY(req->data.kind == STRATA_CONTIGUOUS && len <= req->data.length)) {
            ob1_copy(req->data.u.buffer, frag->data, len);
            ob1_status(req, h.src, h.tag, STRATA_OK, len, len);
            ob1_req_end(pml, req);
        } else {
            ob1_deliver_odd(pml, req, frag, h.src, h.tag);
        }
        if (OB1_UNLIKELY(p->held != NULL))
            ob1_deliver_held(pml, c, p);
        return ST_DONE;
    }
    return ob1_deliver_unexpected(pml, c, p, frag);
}

/* Credits: added when they arrive, and returned to peers that are owed many; control messages. */
#include "data/send_inl.h"

void ib_take_slots(struct ib_peer *p, uint32_t n)
{
    const struct ib_ring_out *out = p->ring_out;

    if (out && out->left) /* of a ring that is not used any more */
        return;
    if (ST_LIKELY(out && p->slots + n <= out->n))
        p->slots = (uint16_t)(p->slots + n);
    else
        ib_peer_broken(p, "it returns more slots of a ring of eager RDMA than were in use");
}

__attribute__((noinline)) void ib_credits_too_many(struct ib_peer *p)
{
    ib_peer_broken(p, "it returns more credits than it was given messages");
}

__attribute__((noinline)) void ib_take_unusual_credits(struct ib_peer *p, const struct ib_head *h)
{
    uint32_t high = p->q[IB_HIGH].credits + (p->reorder.on ? p->reorder.withheld : 0) + h->credits[IB_HIGH];

    ib_not_crowded(p);
    if (p->state != IB_UP)
        return;
    p->q[IB_LOW].credits += h->credits[IB_LOW];
    if (ST_UNLIKELY(high > p->q[IB_HIGH].most_credits || p->q[IB_LOW].credits > p->q[IB_LOW].most_credits))
        ib_credits_too_many(p);
    if (h->slots)
        ib_take_slots(p, h->slots);
    if (p->reorder.on) {
        ib_reorder_credits(p, h->credits[IB_HIGH]);
    } else {
        p->q[IB_HIGH].credits += h->credits[IB_HIGH];
        p->usual = true;
    }
}

void ib_credits_start(struct ib_peer *p, const uint32_t credits[])
{
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].credits = p->q[i].most_credits = credits[i];
    p->q[IB_HIGH].crowded_at = ib_module_of(p)->dev.par->coalesce_at ? ib_crowd_from_now(&p->q[IB_HIGH]) : 0;
    ib_not_crowded(p);
    p->usual = true;
}

void ib_credits_drop(struct ib_peer *p)
{
    p->usual = false;
    p->reorder = (struct ib_reorder){.on = false};
    for (int i = 0; i < IB_PRIORITIES; i++)
        p->q[i].credits = 0;
    ib_ring_stop(p);
}

/* A message may have returned them since they were noted. */
static bool credits_due(const struct ib_peer *p)
{
    const struct ib_ring_in *r = p->q[IB_HIGH].ring;

    return p->owed[IB_HIGH] >= p->q[IB_HIGH].window || p->owed[IB_LOW] >= p->q[IB_LOW].window ||
           (r && p->owed_slots >= r->window);
}

void ib_send_credits(struct ib_module *m)
{
    struct ib_peer *p = m->credits.owing, *next;

    m->credits.owing = NULL;
    for (; p; p = next) {
        next = p->next_owing;
        p->owing = false;
        if (!credits_due(p))
            continue;
        m->count.credits++;
        if (!p->left && ib_send_control(p, IB_CONTROL_CREDITS) == STRATA_ERR_AGAIN)
            ib_owe_list(m, p);
    }
}

/* ---- control messages: credits, BYE, CLOSE ---- */

/* Needs no credit: the receiver has buffers for the few of these beyond its grants. */
int ib_send_control_with(struct ib_peer *p, enum ib_control kind, const void *body, uint32_t len)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_head head = {.am = IB_CONTROL, .hdr_len = (uint8_t)len, .control = (uint8_t)kind};
    bool last = kind >= IB_CONTROL_BYE && kind <= IB_CONTROL_CLOSE_TOO;
    bool signal = last || kind == IB_CONTROL_FAREWELL; /* its completion is waited for */
    struct ib_buffer *b;

    /* Behind CLOSE only BYE is sent: the completion of the last message is waited for. */
    if (p->state < IB_UP || p->state >= IB_CLOSED || (!last && p->state > IB_DRAINING))
        return STRATA_ERR_PEER;
    if (ib_qp_room(q) == 0)
        return STRATA_ERR_AGAIN;
    if (last)
        ib_head_set_low(&head, p->q[IB_LOW].messages);
    else
        lead_take_owed(p, &head, UINT16_MAX);
    ib_batch_post(m);
    if (IB_HEAD + len <= m->brief.most) {
        memcpy(m->brief.image, &head, IB_HEAD);
        st_copy(m->brief.image + IB_HEAD, body, len);
        if (send_post_brief(m, q, IB_HEAD + len, signal) == 0)
            return STRATA_OK;
        send_unpost(m);
    } else if ((b = ib_buffer_get(&m->q[IB_HIGH].sends)) != NULL) {
        memcpy(b->data, &head, IB_HEAD);
        st_copy(b->data + IB_HEAD, body, len);
        if (send_post_buffer(m, q, b, b->data, IB_HEAD + len, NULL) == STRATA_OK)
            return STRATA_OK;
    }
    if (!last)
        lead_give_back(p, &head);
    return STRATA_ERR_AGAIN;
}

int ib_send_control(struct ib_peer *p, enum ib_control kind)
{
    return ib_send_control_with(p, kind, NULL, 0);
}

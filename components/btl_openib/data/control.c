/* Control messages: credits, BYE, CLOSE. */
#include "data/credits.h"
#include "data/send_inl.h"

/* Needs no credit: the receiver has buffers for the few of these beyond its grants. */
int ib_send_control_with(struct ib_peer *p, enum ib_control kind, const void *body, uint32_t len)
{
    struct ib_module *m = ib_module_of(p);
    struct ib_qp *q = &p->q[IB_HIGH];
    struct ib_head head = {.am = IB_CONTROL, .hdr_len = (uint8_t)len, .control = (uint8_t)kind};
    bool last = kind >= IB_CONTROL_BYE && kind <= IB_CONTROL_CLOSE_TOO;
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
        if (send_post_brief(m, q, IB_HEAD + len, last) == 0)
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

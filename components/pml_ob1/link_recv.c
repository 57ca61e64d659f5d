/* Links: what arrives. Each number is taken once, in whatever order they come. */
#include "link.h"
#include "ob1_inl.h"

#define TELL_AFTER       (OB1_LINK_WINDOW / 4) /* messages received and not acknowledged */
#define TELL_AFTER_BYTES (OB1_LINK_BYTES / 4)

/* True the first time for a number. */
static bool take_number(struct ob1_link *link, uint32_t seq)
{
    uint64_t bit = 1ull << seq % 64;
    uint64_t *word = &link->seen[seq % OB1_LINK_WINDOW / 64];

    if (*word & bit)
        return false;
    *word |= bit;
    while (link->seen[link->expected % OB1_LINK_WINDOW / 64] & 1ull << link->expected % 64) {
        link->seen[link->expected % OB1_LINK_WINDOW / 64] &= ~(1ull << link->expected % 64);
        link->expected++;
    }
    return true;
}

static void say_soon(struct ob1_link *link)
{
    link->ack_due = true;
    ob1_link_wake(link);
}

/* The acknowledgement and the request that any frame may carry; false: they cannot be true. */
static bool take_word(struct ob1_link *link, const struct wire_link *h)
{
    if ((int32_t)(h->ack - link->next) > 0)
        return false;
    if ((int32_t)(h->ack - link->oldest) > 0) /* else overtaken by a later one */
        ob1_link_acked(link, h->ack);
    if (h->flags & OB1_F_AGAIN) {
        link->again = link->oldest;
        link->again_end = link->next;
        if (h->lost)
            ob1_link_peer_lost(link, h->lost, h->word);
        ob1_link_wake(link);
    } else if (h->flags & OB1_F_HEARD) {
        ob1_link_peer_heard(link, h->lost, h->word);
    }
    return true;
}

static bool gives_up(const struct wire_link *h)
{
    return h->type == OB1_LINK_ACK && h->flags == OB1_F_GAVE_UP && !h->hdr_len && !h->word && !h->seq && !h->ack &&
           !h->lost;
}

static enum st_deliver deliver(struct ob1 *pml, const struct st_frag *frag, const struct wire_link *h)
{
    struct st_frag inner = {.hdr = frag->data,
                            .data = (const char *)frag->data + h->hdr_len,
                            .hdr_len = h->hdr_len,
                            .len = frag->len - h->hdr_len,
                            .rank = frag->rank,
                            .btl = frag->btl,
                            .keep = frag->keep};

    /* Keys and requests in it are about the path that it was meant for, which we do not know. */
    if (h->flags & OB1_F_DIVERTED) {
        inner.btl = NULL;
        inner.keep = NULL;
    }
    if (*(const volatile uint8_t *)inner.hdr >= OB1_LINK) {
        ob1_protocol_error(pml, frag, "a frame of a link within another");
        return ST_DONE;
    }
    return ob1_deliver(pml, &inner);
}

enum st_deliver ob1_link_take(struct ob1 *pml, const struct st_frag *frag)
{
    struct wire_link h;
    struct ob1_peer *peer;
    struct ob1_link *link;
    uint32_t distance;

    if (!wire_copy(frag, &h, sizeof(h)) || !frag->btl ||
        (h.type == OB1_LINK && (h.hdr_len == 0 || h.hdr_len > frag->len || h.hdr_len > ST_BTL_HDR_MAX))) {
        ob1_protocol_error(pml, frag, "malformed frame of a link");
        return ST_DONE;
    }
    if (ob1_peer_find(pml, frag->rank, &peer) != STRATA_OK || !(link = ob1_link_get(pml, peer))) {
        ob1_peer_fails(pml, frag->rank, STRATA_ERR_NOMEM, "no memory to answer a peer with several paths");
        return ST_DONE;
    }
    if (gives_up(&h)) {
        if (peer->by_link) /* else nothing is kept, and the transport knows as much */
            ob1_peer_fails(pml, frag->rank, STRATA_ERR_PEER, "it has given us up");
        return ST_DONE;
    }
    if (!take_word(link, &h)) {
        ob1_protocol_error(pml, frag, "acknowledgement of what was not sent");
        return ST_DONE;
    }
    if (h.type == OB1_LINK_ACK)
        return ST_DONE;
    distance = h.seq - link->expected;
    if (distance >= OB1_LINK_WINDOW || !take_number(link, h.seq)) {
        if ((int32_t)distance >= (int32_t)OB1_LINK_WINDOW)
            ob1_protocol_error(pml, frag, "number beyond the window of a link");
        else /* it comes again, so our word may have been lost */
            say_soon(link);
        return ST_DONE;
    }
    link->untold_bytes += frag->len;
    if (link->expected - link->told >= TELL_AFTER || link->untold_bytes >= TELL_AFTER_BYTES)
        say_soon(link);
    return deliver(pml, frag, &h);
}

/* Lanes: what arrives. Each number is taken once, in whatever order they come. */
#include "framework/worker/lane.h"

#define TELL_AFTER       (LANE_WINDOW / 4) /* messages received and not acknowledged */
#define TELL_AFTER_BYTES (256u << 10)      /* what is kept at the other end stays in a cache of its processor */

/* True the first time for a number. */
static bool lane_take_number(struct st_lane *lane, uint32_t seq, uint32_t len)
{
    uint64_t bit = 1ull << seq % 64;
    uint64_t *word = &lane->seen[seq % LANE_WINDOW / 64];
    uint32_t units = len / LANE_CAME + 1;

    if (*word & bit)
        return false;
    *word |= bit;
    lane->came[seq % LANE_WINDOW] = units < UINT16_MAX ? (uint16_t)units : UINT16_MAX;
    while (lane->seen[lane->expected % LANE_WINDOW / 64] & 1ull << lane->expected % 64) {
        lane->seen[lane->expected % LANE_WINDOW / 64] &= ~(1ull << lane->expected % 64);
        lane->untold_bytes += (size_t)lane->came[lane->expected % LANE_WINDOW] * LANE_CAME;
        lane->expected++;
    }
    return true;
}

static void lane_say_soon(struct st_lane *lane)
{
    lane->ack_due = true;
    lane_wake(lane);
}

/* The acknowledgement and the request that any frame may carry; false: they cannot be true. */
static bool lane_take_word(struct st_lane *lane, const struct st_btl *by, const struct lane_head *h)
{
    if ((int32_t)(h->ack - lane->next) > 0)
        return false;
    if ((int32_t)(h->ack - lane->oldest) > 0) /* else overtaken by a later one */
        lane_acked(lane, h->ack);
    lane->await_word = false;
    if (h->flags & LANE_F_AGAIN) {
        lane->again = lane->oldest;
        lane->again_end = lane->next;
        if (h->lost)
            lane_peer_lost(lane, by, h->lost, h->word);
        lane_say_soon(lane); /* the peer waits for what has arrived */
    } else if (h->flags & LANE_F_HEARD) {
        lane_peer_heard(lane, h->lost, h->word);
    }
    return true;
}

static void lane_protocol_error(struct worker *w, const struct st_frag *frag, const char *what)
{
    st_worker_protocol_error(&w->head, "worker", frag, what, &w->n_protocol_errors);
}

static bool lane_gives_up(const struct lane_head *h)
{
    return h->kind == LANE_WORD && h->flags == LANE_F_GAVE_UP && !h->hdr_len && !h->word && !h->seq && !h->ack &&
           !h->lost;
}

static void lane_deliver(struct worker *w, const struct st_frag *frag, const struct lane_head *h)
{
    struct st_frag inner = {.hdr = frag->data,
                            .data = (const char *)frag->data + h->hdr_len,
                            .hdr_len = h->hdr_len,
                            .len = frag->len - h->hdr_len,
                            .rank = frag->rank,
                            .btl = frag->btl};
    const struct st_client *c = w->clients[h->kind].row;

    /* Keys and requests in it are about the path that it was meant for, which we do not know. */
    if (h->flags & LANE_F_DIVERTED)
        inner.btl = NULL;
    if (c)
        c->deliver(w->clients[h->kind].arg, &inner);
}

static bool lane_sound(const struct st_frag *frag, const struct lane_head *h)
{
    if (!frag->btl)
        return false;
    return h->kind == LANE_WORD ||
           (h->kind < ST_AM_CLIENTS && h->hdr_len > 0 && h->hdr_len <= frag->len && h->hdr_len <= ST_BTL_HDR_MAX);
}

void lane_take(void *arg, const struct st_frag *frag)
{
    struct worker *w = arg;
    struct lane_head h;
    struct st_peer *peer;
    struct st_lane *lane;
    uint32_t distance;

    if (!lane_copy_head(frag, &h) || !lane_sound(frag, &h)) {
        lane_protocol_error(w, frag, "malformed frame of a lane");
        return;
    }
    if (st_worker_peer(&w->head, frag->rank, &peer) != STRATA_OK || !(lane = lane_get(w, peer))) {
        st_worker_peer_failed(&w->head, frag->rank, STRATA_ERR_NOMEM, "no memory to answer a peer with several paths");
        return;
    }
    /* What a failed peer's transport still brings: nothing may begin anew. */
    if (peer->failed) {
        if (!(h.flags & LANE_F_GAVE_UP))
            lane_refuse_answer(peer, frag);
        return;
    }
    if (lane_gives_up(&h)) {
        if (peer->by_lane) /* else nothing is kept, and the transport knows as much */
            st_worker_peer_failed(&w->head, frag->rank, STRATA_ERR_PEER, "it has given us up");
        return;
    }
    if (!lane_take_word(lane, frag->btl, &h)) {
        lane_protocol_error(w, frag, "acknowledgement of what was not sent");
        return;
    }
    if (h.kind == LANE_WORD)
        return;
    distance = h.seq - lane->expected;
    if (distance >= LANE_WINDOW || !lane_take_number(lane, h.seq, frag->len)) {
        if ((int32_t)distance >= (int32_t)LANE_WINDOW)
            lane_protocol_error(w, frag, "number beyond the window of a lane");
        else /* it comes again, so our word may have been lost */
            lane_say_soon(lane);
        return;
    }
    if (lane->expected - lane->told >= TELL_AFTER || lane->untold_bytes >= TELL_AFTER_BYTES)
        lane_say_soon(lane);
    lane_deliver(w, frag, &h);
}

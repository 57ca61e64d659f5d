/* The slots of a channel's ring at the sender. */
#include "channel/slots.h"

#include <strata/sdk/clock.h>
#include <string.h>

static struct st_btl_endpoint *slots_path(strata_channel_sender_t *c)
{
    return st_peer_path(c->with->peer, (uint8_t)c->offer->card.path);
}

/* A message longer than this is not copied with the lock held, and waits for no others. */
#define SLOTS_SHORT 4096u

/* ---- opening ---- */

static int slots_map(strata_channel_sender_t *c)
{
    const struct st_landing_card *card = &c->offer->card.card;
    struct st_peer *peer = c->with->peer;
    struct st_shared_mapping mapping;

    if (!c->offer->card.mappable || !peer->bml || c->offer->card.path >= peer->bml->n_paths ||
        card->size < ST_LANDING_LEAST || card->size > ST_LANDING_MOST || card->size % ST_LANDING_LINE)
        return STRATA_ERR_UNSUPPORTED;
    const struct st_btl_rdma *rdma = slots_path(c)->btl->rdma;
    if (!rdma->map)
        return STRATA_ERR_UNSUPPORTED;
    int rc = rdma->map(slots_path(c), card->base, card->key, (size_t)card->size + MAPPED_MORE, &mapping);
    if (rc == STRATA_OK && (uintptr_t)mapping.memory % 64) {
        st_shared_unmap(&mapping);
        rc = STRATA_ERR_UNSUPPORTED;
    }
    if (rc == STRATA_OK)
        mapped_out_open(&c->mapped, &mapping, card->size);
    return rc;
}

/* Bytes of the ring that are to be put. */
static int slots_send(void *arg, const void *bytes, uint32_t len, uint32_t notice)
{
    strata_channel_sender_t *c = arg;
    struct channel_bytes head = {.notice = notice};
    struct st_btl_endpoint *ep = slots_path(c);

    if (len > ep->btl->max_send)
        return STRATA_ERR_UNSUPPORTED;
    int rc = ep->btl->ops->send(ep, ST_AM_STREAM, &head, sizeof(head), bytes, len);
    c->n_sends += rc == STRATA_OK;
    return rc == STRATA_OK ? 1 : rc;
}

int channel_slots_open(strata_channel_sender_t *c)
{
    struct st_landing_where at = {
        .worker = c->ch->w, .peer = c->with->peer, .path = (uint8_t)c->offer->card.path, .am = ST_AM_STREAM};

    if (slots_map(c) == STRATA_OK)
        return STRATA_OK;
    int rc = st_landing_sender_open(&at, &c->offer->card.card, &c->landing);
    if (rc == STRATA_OK)
        st_landing_sender_by_message(c->landing, slots_send, c, &c->sends);
    if (rc == STRATA_ERR_ARG) { /* the card's size or path, not an argument of the caller */
        channel_log(c->ch, c->with->peer, "its card describes no ring");
        rc = STRATA_ERR_PROTOCOL;
    }
    return rc;
}

void channel_slots_close(strata_channel_sender_t *c)
{
    st_worker_lock(c->ch->w);
    struct st_landing_sender *landing = c->landing;
    channel_unkeep(c);
    c->landing = NULL;
    c->mapped.ring = NULL;
    st_worker_unlock(c->ch->w);
    if (landing)
        st_landing_sender_close(landing);
    st_shared_unmap(&c->mapped.mapping);
}

/* ---- failures ---- */

int channel_slots_rc(const strata_channel_sender_t *c)
{
    if (c->rc != STRATA_OK || !c->landing)
        return c->rc;
    return st_landing_sender_out(c->landing)->rc;
}

void channel_slots_fail(strata_channel_sender_t *c, int rc)
{
    if (c->landing) {
        st_landing_sender_fail(c->landing, rc);
    } else if (c->mapped.ring) {
        if (c->rc == STRATA_OK)
            c->rc = rc;
        atomic_store_explicit(&c->slow, true, memory_order_relaxed);
        st_worker_wake(c->ch->w);
    }
}

void channel_slots_changed(strata_channel_sender_t *c)
{
    const struct st_peer *peer = c->with->peer;

    if (c->landing)
        st_landing_sender_changed(c->landing);
    else if (c->mapped.ring && (peer->failed || peer->bml->paths[c->offer->card.path].weight == 0))
        channel_slots_fail(c, peer->failed ? peer->failed : STRATA_ERR_PEER);
}

/* The receiver's word cannot be true. Memory that its process has given back to the system reads as zero. */
static ST_COLD int slots_forged(strata_channel_sender_t *c)
{
    c->rc = atomic_load_explicit(&c->mapped.words->head, memory_order_relaxed) ? STRATA_ERR_PROTOCOL : STRATA_ERR_PEER;
    if (c->rc == STRATA_ERR_PROTOCOL)
        channel_log(c->ch, c->with->peer, "the receiver gives back what it was not sent");
    atomic_store_explicit(&c->slow, true, memory_order_relaxed);
    return c->rc;
}

/* ---- slots ---- */

void channel_slots_tell(strata_channel_sender_t *c)
{
    struct channel_head head = {.kind = CHANNEL_LOOK, .ring = c->offer->card.card.name};

    if (atomic_exchange_explicit(&c->mapped.words->asleep, 0, memory_order_relaxed) != 0)
        (void)channel_tell(c->ch, c->with->peer, &head, NULL, 0); /* a failed peer needs none; others look in time */
}

static ST_COLD int slots_no_room(strata_channel_sender_t *c, uint32_t len)
{
    if (!mapped_look(&c->mapped))
        return slots_forged(c);
    if (mapped_room(&c->mapped, len))
        return STRATA_OK;
    return channel_slots_flush(c) == STRATA_OK ? STRATA_ERR_AGAIN : c->rc;
}

int channel_slots_reserve(strata_channel_sender_t *c, uint32_t len, struct st_landing_view *view)
{
    if (!c->mapped.ring)
        return st_landing_sender_reserve(c->landing, len, view);
    c->mapped.reserved = 0;
    if (c->rc != STRATA_OK)
        return c->rc;
    if (c->mapped.ended)
        return STRATA_ERR_STATE;
    int rc = mapped_room(&c->mapped, len) ? STRATA_OK : slots_no_room(c, len);
    if (rc == STRATA_OK)
        mapped_reserve(&c->mapped, len, view);
    return rc;
}

static void slots_keep(strata_channel_sender_t *c)
{
    if (c->is_kept)
        return;
    c->is_kept = true;
    st_list_append(&c->ch->kept, &c->kept);
    st_worker_attend(c->ch->w, ST_ATTEND_WORK << ST_AM_STREAM);
}

int channel_slots_pack(strata_channel_sender_t *c)
{
    bool ok = true;

    if (ST_UNLIKELY(c->ch->w->threaded) || mapped_due(&c->mapped, &ok)) {
        if (mapped_publish(&c->mapped)) {
            st_worker_lock(c->ch->w);
            channel_slots_tell(c);
            st_worker_unlock(c->ch->w);
        }
    } else {
        slots_keep(c);
    }
    return ST_LIKELY(ok) ? STRATA_OK : slots_forged(c);
}

/* Where puts have a connection of their own, a message that follows one of the peer goes by a send, without a trial:
 * the peer's next one may then acknowledge it. */
static inline bool slots_answers(strata_channel_sender_t *c)
{
    return c->with->heard && (slots_path(c)->caps & ST_BTL_PUT_APART);
}

/* A message of the class leaves. Whether by a send. */
static bool slots_count(strata_channel_sender_t *c, uint32_t class)
{
    struct channel_trial_plan plan = channel_trial_plan(class);
    struct channel_trial *t = &c->with->trials[class];
    bool answers = slots_answers(c);

    if (!answers)
        channel_trial_count(t, plan, channel_trial_asks(t, plan) ? st_now_ns() : 0);
    c->with->heard = false;
    return answers || t->sends;
}

/* Whether a message that leaves at once goes by a send. */
static bool slots_sends(strata_channel_sender_t *c, uint32_t len)
{
    return ST_LIKELY(len <= slots_path(c)->btl->max_send) && slots_count(c, channel_trial_of(len));
}

/* In a ring that is filled by puts. A put is in flight until it is done; a send counts as in flight until the next
 * round of progress, as whoever sends without looking sends a stream. */
static int slots_commit_put(strata_channel_sender_t *c, uint32_t len, unsigned how)
{
    bool keep = c->is_kept || st_landing_sender_out(c->landing)->n_puts > 0;
    bool sends = (!keep || len > SLOTS_SHORT) && slots_sends(c, len); /* of long ones each counts */

    c->sends = sends && !keep;
    int rc = st_landing_sender_commit(c->landing, len, how | (keep ? ST_LANDING_KEEP : 0));
    if (keep || c->sends)
        slots_keep(c);
    c->sends = false;
    return rc;
}

/* A slot of a message that lies where the user has it. */
static int slots_send_slot(void *arg, const void *slot, const void *data, uint32_t len, uint32_t notice)
{
    strata_channel_sender_t *c = arg;
    struct st_btl_endpoint *ep = slots_path(c);
    struct channel_slot head = {.notice = notice};

    memcpy(head.slot, slot, sizeof(head.slot));
    int rc = ep->btl->ops->send(ep, ST_AM_STREAM, &head, sizeof(head), data, len);
    c->n_sends += rc == STRATA_OK;
    return rc == STRATA_OK ? 1 : rc;
}

/* One that is not worth waiting for others: it leaves behind those that did. */
static int slots_send_long(strata_channel_sender_t *c, const void *data, size_t len)
{
    const struct st_landing_out *out = st_landing_sender_out(c->landing);
    uint32_t class = channel_trial_of(len);
    struct st_landing_view nowhere;
    int rc = STRATA_OK;

    if (!(slots_answers(c) || c->with->trials[class].sends) || len > slots_path(c)->btl->max_send ||
        len > c->offer->card.card.size - STRATA_CHANNEL_HEAD)
        return STRATA_ERR_UNSUPPORTED;
    if (c->is_kept) {
        channel_unkeep(c);
        rc = st_landing_sender_flush(c->landing);
    }
    if (rc == STRATA_OK && !st_landing_goes_by(out, (uint32_t)len)) {
        rc = st_landing_sender_reserve(c->landing, (uint32_t)len, &nowhere); /* says why, and asks for room */
        return rc == STRATA_OK ? STRATA_ERR_UNSUPPORTED : rc;
    }
    if (rc != STRATA_OK)
        return rc;
    (void)slots_count(c, class);
    return st_landing_sender_send_by(c->landing, data, (uint32_t)len, slots_send_slot, c);
}

int channel_slots_send(strata_channel_sender_t *c, const void *data, size_t len)
{
    int rc;

    if (len > SLOTS_SHORT)
        return slots_send_long(c, data, len);
    if (c->is_kept || !st_landing_goes_at_once(st_landing_sender_out(c->landing), (uint32_t)len))
        return STRATA_ERR_UNSUPPORTED;
    if (slots_sends(c, (uint32_t)len)) {
        rc = st_landing_sender_send_by(c->landing, data, (uint32_t)len, slots_send_slot, c);
        if (rc == STRATA_OK)
            slots_keep(c);
    } else {
        rc = st_landing_sender_send(c->landing, data, (uint32_t)len);
    }
    return ST_LIKELY(rc != STRATA_ERR_AGAIN) ? rc : STRATA_ERR_UNSUPPORTED;
}

int channel_slots_commit(strata_channel_sender_t *c, uint32_t len, unsigned how)
{
    struct mapped_out *m = &c->mapped;

    if (!m->ring)
        return slots_commit_put(c, len, how);
    if (c->rc != STRATA_OK)
        return c->rc;
    if (len >= m->reserved)
        return STRATA_ERR_ARG;
    mapped_commit(m, len, how & ST_LANDING_MARKED ? MAPPED_MARKED : 0);
    return channel_slots_flush(c);
}

int channel_slots_flush(strata_channel_sender_t *c)
{
    if (!c->mapped.ring)
        return st_landing_sender_flush(c->landing);
    if (mapped_publish(&c->mapped))
        channel_slots_tell(c);
    return c->rc;
}

int channel_slots_end(strata_channel_sender_t *c)
{
    struct mapped_out *m = &c->mapped;

    if (!m->ring)
        return st_landing_sender_end(c->landing);
    int rc = c->rc;
    if (rc == STRATA_OK && !mapped_room(m, 0))
        rc = slots_no_room(c, 0);
    if (rc != STRATA_OK)
        return rc;
    mapped_commit(m, 0, MAPPED_END);
    m->ended = true;
    atomic_store_explicit(&c->slow, true, memory_order_relaxed);
    return channel_slots_flush(c);
}

int channel_slots_finished(strata_channel_sender_t *c)
{
    int rc = channel_slots_rc(c);

    if (rc != STRATA_OK)
        return rc;
    if (!c->mapped.ring)
        return st_landing_out_finished(st_landing_sender_out(c->landing)) ? STRATA_OK : STRATA_ERR_AGAIN;
    return c->done ? STRATA_OK : STRATA_ERR_AGAIN;
}

void channel_slots_ask(strata_channel_sender_t *c, size_t len)
{
    if (!c->mapped.ring || atomic_load_explicit(&c->mapped.words->want, memory_order_relaxed) != 0)
        return;
    size_t longest = c->mapped.capacity - MAPPED_SPARE - STRATA_CHANNEL_HEAD;
    mapped_out_ask(&c->mapped, len <= longest ? len : CHANNEL_DESCRIPTOR);
}

/* The slots of a channel's ring at the receiver. */
#include "channel/slots.h"

#include "channel/direct.h"

int channel_slots_in_rc(const strata_channel_receiver_t *c)
{
    return c->in->rc;
}

void channel_slots_tell_room(strata_channel_receiver_t *c)
{
    struct channel_head head = {.kind = CHANNEL_ROOM, .ring = c->ring};

    st_worker_lock(c->ch->w);
    (void)channel_tell(c->ch, c->with->peer, &head, NULL, 0); /* a failed peer needs none; others look in time */
    st_worker_unlock(c->ch->w);
}

/* The sender may wait for what was given back. */
static void slots_return(strata_channel_receiver_t *c)
{
    struct channel_head head = {.kind = CHANNEL_ROOM, .ring = c->ring};

    if (c->mapped.ended && c->mapped.held == 0) {
        head.kind = CHANNEL_DONE;
        (void)channel_tell(c->ch, c->with->peer, &head, NULL, 0); /* a failed peer needs none */
        atomic_store_explicit(&c->all_taken, true, memory_order_relaxed);
    } else if (mapped_return(&c->mapped)) {
        (void)channel_tell(c->ch, c->with->peer, &head, NULL, 0);
    }
}

void channel_slots_return_rest(strata_channel_receiver_t *c)
{
    struct channel_head head = {.kind = CHANNEL_ROOM, .ring = c->ring};

    if (!c->mapped.on) {
        st_landing_receiver_return_rest(c->landing);
    } else if (mapped_return_rest(&c->mapped)) {
        (void)channel_tell(c->ch, c->with->peer, &head, NULL, 0); /* a failed peer needs none */
    }
}

int channel_slots_peek(strata_channel_receiver_t *c, struct st_landing_view *view)
{
    if (!mapped_in_used(&c->mapped))
        return st_landing_receiver_peek(c->landing, view);
    if (c->mapped.ended)
        return ST_LANDING_ENDED;
    int rc = mapped_in_peek(&c->mapped, view);
    if (rc == STRATA_ERR_AGAIN) {
        channel_slots_return_rest(c);
        return channel_slots_in_rc(c) == STRATA_OK ? rc : channel_slots_in_rc(c);
    }
    if (rc == ST_LANDING_ENDED)
        slots_return(c);
    if (rc == STRATA_ERR_PROTOCOL) {
        channel_log(c->ch, c->with->peer, "a slot that cannot be true");
        c->rc = rc;
        st_landing_receiver_fail(c->landing, rc);
    }
    return rc;
}

int channel_slots_take(strata_channel_receiver_t *c, void *buffer, size_t size, uint32_t *len)
{
    if (ST_UNLIKELY(c->mapped.ring || c->coming || c->rc != STRATA_OK || (c->awaited && c->awaited->coming)))
        return STRATA_ERR_UNSUPPORTED;
    return st_landing_receiver_take(c->landing, buffer, size, len);
}

int channel_slots_release(strata_channel_receiver_t *c, uint64_t end, size_t len)
{
    struct st_landing_view view = {.end = end, .first_len = len < UINT32_MAX ? (uint32_t)len : UINT32_MAX};

    if (!c->mapped.on)
        return st_landing_receiver_release(c->landing, &view);
    if (!mapped_release(&c->mapped, end, len))
        return STRATA_ERR_ARG;
    slots_return(c);
    return STRATA_OK;
}

uint32_t channel_slots_held(const strata_channel_receiver_t *c)
{
    return c->mapped.on ? c->mapped.held : c->in->held;
}

bool channel_slots_have_news(strata_channel_receiver_t *c)
{
    const struct st_landing_in *in = c->in;

    if (mapped_in_used(&c->mapped))
        return c->mapped.ended || mapped_word(&c->mapped) != 0 || in->rc != STRATA_OK;
    return in->ready || in->ended || in->rc != STRATA_OK;
}

bool channel_slots_all_taken(const strata_channel_receiver_t *c)
{
    const struct st_landing_in *in = c->in;

    return atomic_load_explicit(&c->all_taken, memory_order_relaxed) ||
           (in->rc == STRATA_OK && in->ended && in->held == 0);
}

bool channel_slots_listen(strata_channel_receiver_t *c)
{
    if (!c->mapped.ring)
        return false;
    if (c->mapped.asleep && atomic_load_explicit(&c->mapped.words->asleep, memory_order_relaxed) != 0)
        return false;
    mapped_in_ask(&c->mapped);
    return true;
}

/* Messages that go from the sender's own memory straight to that of a receiver that waits in recv. The sender waits
 * until they are taken, which is as long as a transfer takes: the receiver is there. Whether that or copies are faster
 * is measured, for each class of lengths. */
#include <strata/sdk/clock.h>

#include "channel/direct.h"
#include "channel/long.h"
#include "channel/slots.h"

/* Whether messages can go straight at all. Without the lock. */
static bool direct_can(strata_channel_sender_t *c)
{
    if (!c->landing && (!c->mapped.ring || atomic_load_explicit(&c->slow, memory_order_relaxed)))
        return false;
    if (!c->direct)
        c->direct = channel_alloc(c->ch, sizeof(*c->direct));
    return c->direct != NULL;
}

/* Bytes that the receiver may have to copy before it waits for a message of that length. */
static size_t direct_before(const strata_channel_sender_t *c, size_t length)
{
    if (c->mapped.ring)
        return length + (size_t)(c->mapped.committed - c->mapped.released);
    st_worker_lock(c->ch->w);
    const struct st_landing_out *out = st_landing_sender_out(c->landing);
    length += (size_t)(out->committed - out->released) * ST_LANDING_LINE;
    st_worker_unlock(c->ch->w);
    return length;
}

/* The receiver waits for the next message. */
static bool direct_is_wanted(strata_channel_sender_t *c, size_t length)
{
    if (c->mapped.ring)
        return mapped_is_wanted(&c->mapped);
    st_worker_lock(c->ch->w);
    bool wanted = channel_put_wanted(c, length);
    st_worker_unlock(c->ch->w);
    return wanted;
}

/* It does, or will soon: in the time that copies take. */
static bool direct_comes(strata_channel_sender_t *c, const struct channel_choice *choice, size_t length)
{
    uint64_t patience = channel_copy_ns(choice, direct_before(c, length)), until;

    if (direct_is_wanted(c, length))
        return true;
    if (patience == 0)
        return false;
    (void)strata_channel_flush(c); /* it may wait for what is kept */
    until = st_now_ns() + patience;
    do {
        st_worker_progress(c->ch->w);
        if (direct_is_wanted(c, length))
            return true;
    } while (st_now_ns() < until);
    return false;
}

static int direct_is_through(void *arg)
{
    strata_channel_sender_t *c = arg;

    return c->mapped.ring ? channel_out_is_taken(c) : channel_put_is_done(c);
}

/* STRATA_ERR_AGAIN: the other way. */
static int direct_go(strata_channel_sender_t *c, const void *data, size_t length)
{
    st_worker_lock(c->ch->w);
    int rc = c->mapped.ring ? channel_out_direct(c, data, length) : channel_put_straight(c, data, length);
    st_worker_unlock(c->ch->w);
    if (rc != STRATA_OK)
        return rc;
    c->direct->n_gone++;
    return channel_try(c->ch, direct_is_through, c, STRATA_CHANNEL_FOREVER);
}

/* Counts a message that went by choice->way, and says what the receiver should know of the next ones. */
static void direct_count(strata_channel_sender_t *c, struct channel_choice *choice, size_t length)
{
    struct channel_choices *all = &c->direct->choices;
    uint64_t now = st_now_ns(), took = now - all->last;
    uint32_t wish;

    all->last = now;
    channel_count(choice, length, took);
    wish = channel_wish(all);
    if (c->landing && wish != c->direct->wished) {
        st_worker_lock(c->ch->w);
        channel_put_wish(c, wish);
        st_worker_unlock(c->ch->w);
    }
}

int channel_direct_send(strata_channel_sender_t *c, const void *data, size_t length,
                        int (*by_copy)(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms))
{
    struct channel_choice *choice;
    int rc = STRATA_ERR_AGAIN;

    if (!direct_can(c))
        return by_copy(c, data, length, STRATA_CHANNEL_FOREVER);
    choice = &c->direct->choices.of[channel_class(length)];
    if (choice->way == CHANNEL_DIRECT && direct_comes(c, choice, length))
        rc = direct_go(c, data, length);
    if (rc == STRATA_ERR_AGAIN)
        rc = by_copy(c, data, length, STRATA_CHANNEL_FOREVER);
    direct_count(c, choice, length);
    return rc;
}

void channel_direct_close(strata_channel_sender_t *c)
{
    channel_free(c->ch, c->direct, sizeof(*c->direct));
    c->direct = NULL;
}

/* Senders that were given up: the receiver is told, and what it may still read stays until it says that it does not. */
#include "channel/long.h"
#include "channel/slots.h"

/* Whether the receiver may read the memory of a long message. */
static bool abort_is_read(const strata_channel_sender_t *c)
{
    for (unsigned i = 0; c->longs && i < CHANNEL_LONGS; i++)
        if (c->longs[i].sent)
            return true;
    return false;
}

/* Finds the receiver's offer. One that the receiver makes later is refused then. */
static bool abort_has_offer(strata_channel_sender_t *c)
{
    if (!c->offer && (c->offer = channel_offer_find(c)) != NULL)
        c->offer->sender = c;
    return c->offer != NULL;
}

static bool abort_is_over(strata_channel_sender_t *c)
{
    return c->with->peer->failed || (abort_has_offer(c) && (c->offer->stopped || !abort_is_read(c)));
}

void channel_aborted_sweep(struct channels *ch)
{
    for (struct st_node *n = ch->aborted.next; n != &ch->aborted;) {
        strata_channel_sender_t *c = ST_CONTAINER(n, strata_channel_sender_t, kept);
        if (!abort_is_over(c)) {
            n = n->next;
            continue;
        }
        st_list_remove(n);
        channel_sender_bye(c);
        channel_sender_free(c);
        n = ch->aborted.next; /* a bye to this process itself may have changed the list */
    }
}

void channel_aborted_free(struct channels *ch)
{
    while (!st_list_empty(&ch->aborted)) {
        strata_channel_sender_t *c = ST_CONTAINER(ch->aborted.next, strata_channel_sender_t, kept);
        st_list_remove(&c->kept);
        channel_sender_free(c);
    }
}

int strata_channel_abort_send(strata_channel_sender_t *c)
{
    if (!c)
        return STRATA_ERR_ARG;
    struct channels *ch = c->ch;
    st_worker_lock(ch->w);
    c->aborted = true;
    if (channel_slots_are_open(c))
        (void)channel_slots_flush(c); /* the receiver takes what has come */
    st_worker_unlock(ch->w);
    channel_slots_close(c);
    st_worker_lock(ch->w);
    if (abort_has_offer(c) && !abort_is_over(c)) {
        struct channel_head broken = {
            .kind = CHANNEL_BYE, .ring = c->offer->card.card.name, .length = CHANNEL_BYE_BROKEN};
        (void)channel_tell(ch, c->with->peer, &broken, NULL, 0); /* no memory: it waits until this process ends */
    }
    st_list_append(&ch->aborted, &c->kept);
    channel_aborted_sweep(ch);
    st_worker_unlock(ch->w);
    return STRATA_OK;
}

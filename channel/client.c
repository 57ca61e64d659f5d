/* Channels as a client of the worker: what arrives, its life in a context. */
#include <stdlib.h>
#include <string.h>

#include "channel/channels.h"
#include "channel/direct.h"
#include "channel/long.h"
#include "channel/slots.h"

/* ---- arrivals ---- */

/* A card or a stop for a ring of the peer's. Whatever it says twice is dropped. */
static const char *channel_offered(struct channels *ch, struct channel_peer *with, const struct channel_head *head,
                                   const struct st_frag *frag)
{
    struct channel_offer *o = channel_offer_of(with, head->ring);

    if (!o) {
        o = channel_alloc(ch, sizeof(*o));
        if (o && channel_table_set(ch, &with->offers, head->ring, o) != STRATA_OK) {
            channel_free(ch, o, sizeof(*o));
            o = NULL;
        }
    }
    if (!o)
        return "no memory for a channel's card";
    if (head->kind == CHANNEL_STOP) {
        if (o->carded && o->use != head->id)
            return NULL; /* it crossed the word that freed the number */
        o->stopped = true;
        o->use = head->id;
        if (o->sender)
            channel_slots_fail(o->sender, STRATA_ERR_PEER);
        return NULL;
    }
    if (o->carded)
        return "a channel's ring is offered twice";
    memcpy(&o->card, frag->data, sizeof(o->card));
    if (o->card.card.name != head->ring || o->card.path > UINT8_MAX || o->card.mappable > 1 ||
        memchr(o->card.name, 0, sizeof(o->card.name)) == NULL)
        return "a channel's card cannot be true";
    o->stopped = o->stopped && o->use == head->id;
    o->use = head->id;
    o->carded = true;
    return NULL;
}

static void channel_bye(struct channel_peer *with, const struct channel_head *head)
{
    strata_channel_receiver_t *c = channel_receiver_of(with, head->ring);

    if (!c)
        return;
    c->bye = c->bye || head->length != CHANNEL_BYE_BROKEN;
    if (!channel_slots_all_taken(c))
        st_landing_receiver_fail(c->landing, STRATA_ERR_PEER);
    channel_set_ready(c);
}

/* About a long message, or to an end that waits. One that comes after its channel was closed is dropped. */
static const char *channel_long(struct channel_peer *with, const struct channel_head *head, const struct st_frag *frag)
{
    const struct channel_offer *o = channel_offer_of(with, head->ring);
    strata_channel_receiver_t *c = channel_receiver_of(with, head->ring);

    if (head->kind == CHANNEL_PART)
        return c ? channel_in_part(c, head, frag) : NULL;
    if (head->kind == CHANNEL_LOOK && c)
        channel_set_ready(c);
    if (head->kind == CHANNEL_DONE && o && o->sender)
        o->sender->done = true;
    if (head->kind == CHANNEL_WISH && c && !c->mapped.on)
        channel_wished(c, (uint32_t)head->length);
    if (head->kind == CHANNEL_WANT && o && o->sender && !o->sender->aborted)
        return channel_put_want(o->sender, head->offset, frag->data);
    if (head->kind >= CHANNEL_LOOK) /* whoever waits looks after each arrival */
        return NULL;
    if (!o || !o->sender)
        return NULL;
    return head->kind == CHANNEL_TAKEN ? channel_out_taken(o->sender, head->id) : channel_out_pull(o->sender, head);
}

/* Whether a message of that kind may have so many bytes of data. */
static bool channel_fits(const struct channel_head *head, uint32_t len)
{
    if (head->kind == CHANNEL_PART)
        return true;
    if (head->kind == CHANNEL_WANT)
        return len == sizeof(struct channel_want);
    return len == (head->kind == CHANNEL_CARD ? sizeof(struct channel_card) : 0);
}

/* The receiver of the ring that a notice in a message is about; *wrong: what is wrong with it, or NULL. One that was
 * closed since has none. */
static strata_channel_receiver_t *channel_notice_of(struct channels *ch, const struct st_frag *frag, uint32_t notice,
                                                    const char **wrong)
{
    struct st_peer *peer = st_worker_peer_known(ch->w, frag->rank);
    struct channel_peer *with = peer ? peer->client[ST_AM_STREAM] : NULL;
    strata_channel_receiver_t *c = with ? channel_receiver_of(with, st_landing_name(notice)) : NULL;

    *wrong = NULL;
    if (ST_UNLIKELY(c && (c->mapped.on || st_landing_is_credit(notice) || st_landing_is_client_notice(notice)))) {
        *wrong = "bytes for a ring that takes none";
        return NULL;
    }
    return c;
}

/* Bytes of slots. */
static const char *channel_bytes_take(struct channels *ch, const struct st_frag *frag)
{
    struct channel_bytes head;
    const char *wrong;

    memcpy(&head, frag->hdr, sizeof(head));
    strata_channel_receiver_t *c = channel_notice_of(ch, frag, head.notice, &wrong);
    if (c) {
        c->with->heard = true;
        st_landing_receiver_arrived(c->landing, head.notice, frag->data, frag->len);
        channel_set_ready(c);
    }
    return wrong;
}

/* One slot. */
static const char *channel_slot_take(struct channels *ch, const struct st_frag *frag)
{
    struct channel_slot head;
    const char *wrong;

    memcpy(&head, frag->hdr, sizeof(head));
    strata_channel_receiver_t *c = channel_notice_of(ch, frag, head.notice, &wrong);
    if (!c)
        return wrong;
    c->with->heard = true;
    if (st_landing_receiver_arrived_slot(c->landing, head.notice, head.slot, frag->data, frag->len, c->into.to,
                                         c->into.size)) {
        c->into.to = NULL;
        c->into.length = frag->len;
        c->into.taken = true;
    } else {
        channel_set_ready(c);
    }
    return NULL;
}

/* Handles a message about a channel. Returns the error in it, or NULL. */
static const char *channel_take(struct channels *ch, const struct st_frag *frag)
{
    struct channel_peer *with;
    struct channel_head head;
    const char *wrong = NULL;

    if (frag->hdr_len == sizeof(struct channel_slot))
        return channel_slot_take(ch, frag);
    if (frag->hdr_len == sizeof(struct channel_bytes))
        return channel_bytes_take(ch, frag);
    if (frag->hdr_len != sizeof(head))
        return "a malformed message about a channel";
    memcpy(&head, frag->hdr, sizeof(head));
    if (head.kind > CHANNEL_WANT || head.ring >= ST_LANDING_NAMES || !channel_fits(&head, frag->len))
        return "a malformed message about a channel";
    if (channel_peer_of(ch, frag->rank, false, &with) != STRATA_OK)
        return "no memory for a peer's channels";
    if (head.kind == CHANNEL_BYE)
        channel_bye(with, &head);
    else if (head.kind > CHANNEL_BYE)
        wrong = channel_long(with, &head, frag);
    else
        wrong = channel_offered(ch, with, &head, frag);
    if (ST_UNLIKELY(!st_list_empty(&ch->aborted)))
        channel_aborted_sweep(ch);
    return wrong;
}

static void channel_deliver(void *arg, const struct st_frag *frag)
{
    struct channels *ch = arg;
    const char *wrong = channel_take(ch, frag);

    if (wrong)
        st_worker_protocol_error(ch->w, "channel", frag, wrong, &ch->n_dropped);
}

static void channel_notified(void *arg, int rank, uint32_t notice)
{
    struct channels *ch = arg;
    struct st_peer *peer = st_worker_peer_known(ch->w, rank);
    struct channel_peer *with = peer ? peer->client[ST_AM_STREAM] : NULL;
    uint32_t ring = st_landing_name(notice);

    if (!with)
        return;
    if (st_landing_is_credit(notice)) {
        struct channel_offer *o = channel_offer_of(with, ring);
        if (o && o->sender && o->sender->landing)
            st_landing_sender_notified(o->sender->landing, notice);
        return;
    }
    strata_channel_receiver_t *c = channel_receiver_of(with, ring);
    if (!c)
        return;
    with->heard = true;
    if (st_landing_is_client_notice(notice)) {
        if (!channel_await_landed(c))
            channel_log(ch, peer, "a message was put that nobody waits for"); /* or no more: recv has failed */
        return;
    }
    if (c->mapped.on) { /* one who writes by stores has nothing to put */
        st_landing_receiver_fail(c->landing, STRATA_ERR_PROTOCOL);
        channel_log(ch, peer, "puts into a ring that is mapped");
    } else {
        st_landing_receiver_notified(c->landing, notice);
    }
    channel_set_ready(c);
}

/* The peer has failed, or its paths have changed. */
static void channel_changed(void *arg, struct st_peer *peer)
{
    struct channel_peer *with = peer->client[ST_AM_STREAM];

    for (uint32_t i = 0; with && i < ST_LANDING_NAMES; i++) {
        struct channel_offer *o = channel_offer_of(with, i);
        strata_channel_receiver_t *c = channel_receiver_of(with, i);
        if (o && o->sender)
            channel_slots_changed(o->sender);
        if (c) {
            st_landing_receiver_changed(c->landing);
            channel_set_ready(c);
        }
    }
    channel_aborted_sweep(arg);
}

void channel_flush_kept(struct channels *ch)
{
    while (!st_list_empty(&ch->kept)) {
        strata_channel_sender_t *c = ST_CONTAINER(ch->kept.next, strata_channel_sender_t, kept);
        channel_unkeep(c);
        (void)channel_slots_flush(c); /* what has broken it, the next call says */
    }
}

static int channel_attend(void *arg)
{
    struct channels *ch = arg;

    channel_flush_kept(ch);
    st_worker_calm(ch->w, ST_ATTEND_WORK << ST_AM_STREAM);
    return 0;
}

static const struct st_client channel_row = {.am = ST_AM_STREAM,
                                             .deliver = channel_deliver,
                                             .notified = channel_notified,
                                             .attend = channel_attend,
                                             .peer_changed = channel_changed,
                                             .peer_failed = channel_changed};

/* ---- life ---- */

int st_channels_create(strata_t *s)
{
    struct channels *ch = calloc(1, sizeof(*ch));

    if (!ch)
        return STRATA_ERR_NOMEM;
    ch->w = s->worker;
    ch->direct_min = s->base->channel_direct_min;
    ch->copy_least = st_copy_shared_least();
    st_list_init(&ch->kept);
    st_list_init(&ch->closed);
    st_list_init(&ch->aborted);
    int rc = st_worker_join(s->worker, &channel_row, ch);
    if (rc != STRATA_OK) {
        free(ch);
        return rc;
    }
    s->channels = ch;
    return STRATA_OK;
}

void st_channels_mem_report(const strata_t *s, st_mem_line_fn line, void *arg)
{
    struct channels *ch = s->channels;
    strata_mem_line_t ends = {.component = "channel",
                              .category = "ends and peers",
                              .bytes = atomic_load_explicit(&ch->bytes, memory_order_relaxed)};
    strata_mem_line_t messages = {.component = "channel", .category = "long messages", .bytes = ch->long_bytes};

    if (ends.bytes)
        line(arg, &ends);
    if (messages.bytes)
        line(arg, &messages);
}

void st_channels_destroy(strata_t *s)
{
    struct channels *ch = s->channels;

    if (!ch)
        return;
    channel_sweep(ch, true);
    channel_aborted_free(ch);
    st_worker_leave(ch->w, &channel_row);
    for (int64_t i = 0; (i = st_worker_peer_next(ch->w, i)) >= 0; i++) {
        struct st_peer *peer = st_worker_peer_known(ch->w, (int)i);
        struct channel_peer *with = peer->client[ST_AM_STREAM];
        peer->client[ST_AM_STREAM] = NULL;
        if (!with)
            continue;
        for (uint32_t k = 0; k < ST_LANDING_NAMES; k++)
            channel_free(ch, channel_offer_of(with, k), sizeof(struct channel_offer));
        channel_table_clear(ch, &with->offers);
        channel_table_clear(ch, &with->in);
        channel_free(ch, with, sizeof(*with));
    }
    free(ch);
    s->channels = NULL;
}

/* Messages at the receiver: taken where they landed or copied, and given back. */
#include <strata/sdk/idle.h>

#include "channel/direct.h"
#include "channel/long.h"
#include "channel/slots.h"

/* Looks at a mapped ring before the first round of progress: some microseconds, in which the answer to a message comes.
 */
#define RECEIVE_LOOKS 2000u

/* Rounds of progress in which recv looks at a ring that puts fill, before a wait with all that belongs to one. */
#define RECEIVE_POLLS 200u

struct receive_call {
    strata_channel_receiver_t *c;
    strata_channel_view_t *view;
    void *buffer;  /* where a long message goes to, or NULL */
    size_t size;   /* bytes there */
    bool alone;    /* only when no message is held */
    bool stays;    /* until there is one, with the buffer */
    bool awaits;   /* the sender may have been told so */
    bool into;     /* the message came to the buffer by itself, and is no slot's any more */
    size_t length; /* of the message */
    uint32_t slot; /* bytes in its slot */
};

/* A long message is there: it is handed out. */
static void receive_hand_out(struct receive_call *call)
{
    strata_channel_receiver_t *c = call->c;
    struct channel_in *in = c->coming;

    call->length = in->d.length;
    call->slot = st_landing_length(&in->slot);
    *call->view = (strata_channel_view_t){.first = in->memory.at, .first_len = in->want, .mark = in->slot.end};
    c->coming = NULL;
    st_list_append(&c->held, &in->held);
}

/* A message that was put to the buffer. */
static int receive_straight(struct receive_call *call)
{
    const struct channel_awaited *a = call->c->awaited;
    int rc = channel_await_there(call->c);

    if (rc == STRATA_OK) {
        call->length = a->length;
        call->slot = sizeof(struct channel_straight);
        *call->view = (strata_channel_view_t){.first = a->memory.at, .first_len = a->length, .mark = a->end};
    }
    return rc;
}

/* A marked slot: its message is elsewhere. */
static int receive_marked(struct receive_call *call, const struct st_landing_view *slot)
{
    if (st_landing_length(slot) == sizeof(struct channel_straight))
        return channel_await_begin(call->c, slot);
    return channel_in_begin(call->c, slot);
}

/* The message has come to the buffer of recv. */
static int receive_into(struct receive_call *call)
{
    struct channel_into *into = &call->c->into;

    call->into = true;
    call->length = into->length;
    into->taken = false;
    st_landing_receiver_pay(call->c->landing);
    return STRATA_OK;
}

/* With the lock held. */
static int receive_peek(void *arg)
{
    struct receive_call *call = arg;
    strata_channel_receiver_t *c = call->c;
    struct st_landing_view view;
    int rc = c->rc;

    if (c->into.taken)
        return receive_into(call);
    if (rc != STRATA_OK)
        return rc;
    if (c->awaited && c->awaited->coming)
        return receive_straight(call);
    if (call->alone && channel_slots_held(c) > (c->coming != NULL))
        return STRATA_ERR_STATE;
    if (!c->coming) {
        rc = channel_slots_peek(c, &view);
        if (rc == STRATA_ERR_AGAIN && call->stays && c->awaited) {
            channel_await(c, call->buffer, call->size);
            call->awaits = true;
        }
        if (rc == STRATA_ERR_AGAIN && call->alone)
            c->into = (struct channel_into){.to = call->buffer, .size = call->size};
        if (rc != STRATA_OK)
            return rc;
        if (!view.marked) {
            *call->view = channel_view(&view);
            call->length = call->slot = st_landing_length(&view);
            return STRATA_OK;
        }
        rc = receive_marked(call, &view);
        if (rc == STRATA_OK && !c->coming)
            return receive_straight(call);
    }
    if (rc == STRATA_OK)
        rc = channel_in_move(c, call->buffer, call->size);
    if (rc == STRATA_OK)
        receive_hand_out(call);
    return rc;
}

/* Before a sleep. */
static void receive_ask(void *arg)
{
    const struct receive_call *call = arg;

    if (channel_slots_listen(call->c))
        mapped_barrier();
}

/* Looks a few times where the wait may be long, since a round of progress takes longer than an answer that comes at
 * once. What this thread has kept leaves first: the answer may be to that. */
static ST_COLD uint64_t receive_look(strata_channel_receiver_t *c)
{
    struct st_worker *w = c->ch->w;
    uint64_t word = 0;

    if (!w->threaded && !st_list_empty(&c->ch->kept))
        channel_flush_kept(c->ch);
    for (uint32_t left = w->spin < RECEIVE_LOOKS ? w->spin : RECEIVE_LOOKS; word == 0 && left > 0; left--)
        word = mapped_word(&c->mapped);
    return word;
}

/* A message that is there in a mapped ring, without the lock. 0: the slow way says. */
static inline uint64_t receive_word(strata_channel_receiver_t *c, int64_t limit_ms, bool wants)
{
    if (!c->mapped.on || c->coming || c->mapped.ended || c->rc != STRATA_OK)
        return 0;
    uint64_t word = mapped_word(&c->mapped);
    if (word == 0 && limit_ms != 0) {
        if (wants)
            mapped_want(&c->mapped);
        word = receive_look(c);
    }
    return !(word & MAPPED_MARKED) && mapped_is_message(&c->mapped, word) ? word : 0;
}

int strata_channel_peek(strata_channel_receiver_t *c, int64_t limit_ms, strata_channel_view_t *view)
{
    struct st_landing_view at;

    if (!c || !view)
        return STRATA_ERR_ARG;
    uint64_t word = receive_word(c, limit_ms, false);
    if (ST_LIKELY(word != 0)) {
        mapped_take(&c->mapped, word, &at);
        *view = channel_view(&at);
        return STRATA_OK;
    }
    return channel_try_asking(c->ch, receive_peek, receive_ask, &(struct receive_call){.c = c, .view = view}, limit_ms);
}

/* The long message of that mark, or NULL. */
static struct channel_in *receive_held(strata_channel_receiver_t *c, uint64_t mark)
{
    for (struct st_node *n = c->held.next; n != &c->held; n = n->next) {
        struct channel_in *in = ST_CONTAINER(n, struct channel_in, held);
        if (in->slot.end == mark)
            return in;
    }
    return NULL;
}

/* Releases the message of that mark with `len` bytes in its slot, or a long message. */
static inline int receive_release(strata_channel_receiver_t *c, uint64_t mark, size_t len)
{
    if (ST_LIKELY(c->mapped.on && !c->mapped.ended && st_list_empty(&c->held))) {
        if (!mapped_release(&c->mapped, mark, len))
            return STRATA_ERR_ARG;
        if (mapped_return(&c->mapped))
            channel_slots_tell_room(c);
        return STRATA_OK;
    }
    st_worker_lock(c->ch->w);
    struct channel_in *in = receive_held(c, mark);
    int rc = channel_slots_release(c, mark, in ? st_landing_length(&in->slot) : len);
    if (in && rc != STRATA_ERR_ARG) {
        st_list_remove(&in->held);
        channel_in_free(in);
    }
    st_worker_unlock(c->ch->w);
    return rc;
}

int strata_channel_release(strata_channel_receiver_t *c, const strata_channel_view_t *view)
{
    if (!c || !view)
        return STRATA_ERR_ARG;
    return receive_release(c, view->mark, view->first_len + view->second_len);
}

/* Copies a message unless it came there by itself. */
static void receive_copy(const strata_channel_view_t *v, void *buffer, size_t size)
{
    size_t first = v->first_len < size ? v->first_len : size;
    size_t second = v->second_len < size - first ? v->second_len : size - first;

    if (first && v->first != buffer)
        st_copy_long(buffer, v->first, first);
    if (second)
        st_copy_long((char *)buffer + first, v->second, second);
}

static inline int receive_mapped(strata_channel_receiver_t *c, uint64_t word, void *buffer, size_t size, size_t *length)
{
    struct st_landing_view at;
    uint32_t len = (uint32_t)word;

    mapped_take(&c->mapped, word, &at);
    if (ST_LIKELY(len <= size && at.second_len == 0)) {
        if (len)
            st_copy(buffer, at.first, len);
    } else {
        strata_channel_view_t v = channel_view(&at);
        receive_copy(&v, buffer, size);
    }
    if (length)
        *length = len;
    c->mapped.held = 0;
    c->mapped.released = c->mapped.read;
    if (mapped_return(&c->mapped))
        channel_slots_tell_room(c);
    return len > size ? STRATA_ERR_TRUNCATE : STRATA_OK;
}

/* The buffer is the user's again. Another thread's progress may have filled it since the last look. */
static void receive_end(struct receive_call *call, int *rc)
{
    strata_channel_receiver_t *c = call->c;

    st_worker_lock(c->ch->w);
    if (call->awaits)
        channel_await_end(c);
    if (c->into.taken)
        *rc = receive_into(call);
    c->into.to = NULL;
    st_worker_unlock(c->ch->w);
}

static ST_COLD int receive_slow(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length,
                                int64_t limit_ms)
{
    char nowhere; /* for no bytes */
    strata_channel_view_t v;
    struct receive_call call = {.c = c, .view = &v, .buffer = buffer ? buffer : &nowhere, .size = size, .alone = true};
    call.stays = limit_ms < 0 && size >= c->ch->direct_min;
    int rc = channel_try_asking(c->ch, receive_peek, receive_ask, &call, limit_ms);

    /* A transfer to the user's memory cannot be left. */
    if ((rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_TIMEOUT) && c->coming && c->coming->started &&
        c->coming->memory.at == call.buffer)
        rc = channel_try_asking(c->ch, receive_peek, receive_ask, &call, STRATA_CHANNEL_FOREVER);
    receive_end(&call, &rc);
    if (rc != STRATA_OK)
        return rc;
    c->last = call.length;
    if (length)
        *length = call.length;
    if (call.into)
        return STRATA_OK;
    receive_copy(&v, buffer, size);
    (void)receive_release(c, v.mark, call.slot); /* what has broken the channel since, the next call says */
    return call.length > size ? STRATA_ERR_TRUNCATE : STRATA_OK;
}

/* One look at a ring that puts fill, with the lock held. */
static inline int receive_look_once(strata_channel_receiver_t *c, void *buffer, size_t size, uint32_t *len)
{
    struct channel_into *into = &c->into;

    if (into->taken) {
        into->taken = false;
        *len = into->length;
        st_landing_receiver_pay(c->landing);
        return STRATA_OK;
    }
    if (channel_slots_are_empty(c)) {
        into->to = buffer;
        into->size = size;
        return STRATA_ERR_AGAIN;
    }
    into->to = NULL;
    return channel_slots_take(c, buffer, size, len);
}

/* Rounds of progress between looks, with the lock held. A receiver that tells the sender what it waits for does that
 * first. */
static inline uint32_t receive_polls(const strata_channel_receiver_t *c, size_t size, int64_t limit_ms)
{
    bool tells =
        limit_ms < 0 && c->awaited && size >= c->ch->direct_min && c->awaited->wished >> channel_class(c->last) & 1;

    return tells || limit_ms == 0 ? 0 : c->ch->w->spin < RECEIVE_POLLS ? c->ch->w->spin : RECEIVE_POLLS;
}

/* Where puts fill the ring: a message that is there, or comes soon; else the slow way says. */
static int receive_not_mapped(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length, int64_t limit_ms)
{
    struct st_worker *w = c->ch->w;
    uint32_t len, polls = UINT32_MAX; /* not known yet */

    for (;;) {
        st_worker_lock(w);
        int rc = receive_look_once(c, buffer, size, &len);
        if (rc == STRATA_ERR_AGAIN && polls == UINT32_MAX)
            polls = receive_polls(c, size, limit_ms);
        st_worker_unlock(w);
        if (rc == STRATA_OK)
            break;
        if (rc == STRATA_ERR_UNSUPPORTED || (rc == STRATA_ERR_AGAIN && polls-- == 0))
            return receive_slow(c, buffer, size, length, limit_ms);
        if (rc != STRATA_ERR_AGAIN)
            return rc;
        if (st_worker_progress(w) == 0)
            st_relax();
    }
    c->last = len;
    if (length)
        *length = len;
    return len > size ? STRATA_ERR_TRUNCATE : STRATA_OK;
}

int strata_channel_recv(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length, int64_t limit_ms)
{
    if (ST_UNLIKELY(!c || (!buffer && size)))
        return STRATA_ERR_ARG;
    if (!c->mapped.ring)
        return receive_not_mapped(c, buffer, size, length, limit_ms);
    bool wants = limit_ms < 0 && size >= c->ch->direct_min;
    uint64_t word = c->mapped.held == 0 ? receive_word(c, limit_ms, wants) : 0;
    return ST_LIKELY(word != 0) ? receive_mapped(c, word, buffer, size, length)
                                : receive_slow(c, buffer, size, length, limit_ms);
}

/* Messages at the receiver: taken where they landed or copied, and given back. */
#include "channel/long.h"

struct receive_call {
    strata_channel_receiver_t *c;
    strata_channel_view_t *view;
    void *buffer;  /* where a long message goes to, or NULL */
    size_t size;   /* bytes there */
    bool alone;    /* only when no message is held */
    size_t length; /* of the message */
};

/* A long message is there: it is handed out. */
static void receive_hand_out(struct receive_call *call)
{
    strata_channel_receiver_t *c = call->c;
    struct channel_in *in = c->coming;

    call->length = in->d.length;
    *call->view = (strata_channel_view_t){.first = in->memory.at, .first_len = in->want, .mark = in->slot.end};
    c->coming = NULL;
    st_list_append(&c->held, &in->held);
}

static int receive_peek(void *arg)
{
    struct receive_call *call = arg;
    strata_channel_receiver_t *c = call->c;
    struct st_landing_view view;
    int rc = c->rc;

    if (rc != STRATA_OK)
        return rc;
    if (call->alone && st_landing_receiver_in(c->landing)->held > (c->coming != NULL))
        return STRATA_ERR_STATE;
    if (!c->coming) {
        rc = st_landing_receiver_peek(c->landing, &view);
        if (rc != STRATA_OK)
            return rc;
        if (!view.marked) {
            *call->view = channel_view(&view);
            call->length = st_landing_length(&view);
            return STRATA_OK;
        }
        rc = channel_in_begin(c, &view);
    }
    if (rc == STRATA_OK)
        rc = channel_in_move(c, call->buffer, call->size);
    if (rc == STRATA_OK)
        receive_hand_out(call);
    return rc;
}

int strata_channel_peek(strata_channel_receiver_t *c, int64_t limit_ms, strata_channel_view_t *view)
{
    if (!c || !view)
        return STRATA_ERR_ARG;
    return channel_try(c->ch, receive_peek, &(struct receive_call){.c = c, .view = view}, limit_ms);
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

int strata_channel_release(strata_channel_receiver_t *c, const strata_channel_view_t *view)
{
    if (!c || !view)
        return STRATA_ERR_ARG;
    struct st_landing_view v = {.end = view->mark};
    st_worker_lock(c->ch->w);
    struct channel_in *in = receive_held(c, view->mark);
    int rc = st_landing_receiver_release(c->landing, &v);
    if (in && rc != STRATA_ERR_ARG) {
        st_list_remove(&in->held);
        channel_in_free(in);
    }
    st_worker_unlock(c->ch->w);
    return rc;
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

int strata_channel_recv(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length, int64_t limit_ms)
{
    char nowhere; /* for no bytes */
    strata_channel_view_t v;

    if (!c || (!buffer && size))
        return STRATA_ERR_ARG;
    struct receive_call call = {.c = c, .view = &v, .buffer = buffer ? buffer : &nowhere, .size = size, .alone = true};
    int rc = channel_try(c->ch, receive_peek, &call, limit_ms);
    /* A transfer to the user's memory cannot be left. */
    if ((rc == STRATA_ERR_AGAIN || rc == STRATA_ERR_TIMEOUT) && c->coming && c->coming->started &&
        c->coming->memory.at == call.buffer)
        rc = channel_try(c->ch, receive_peek, &call, STRATA_CHANNEL_FOREVER);
    if (rc != STRATA_OK)
        return rc;
    receive_copy(&v, buffer, size);
    if (length)
        *length = call.length;
    (void)strata_channel_release(c, &v); /* what has broken the channel since, the next call says */
    return call.length > size ? STRATA_ERR_TRUNCATE : STRATA_OK;
}

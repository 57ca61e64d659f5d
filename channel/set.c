/* Sets of receiving ends: one call waits for any of them. A list holds the ends that may have something to take, so the
 * cost of a call grows with these, not with the ends of the set. */
#include <stdlib.h>

#include "channel/long.h"
#include "framework/base/context.h"

struct strata_channel_set {
    struct channels *ch;
    struct st_node ready; /* ends that may have something, in the order of their turns */
    uint32_t n;           /* ends in the set */
};

int strata_channel_set_create(strata_t *s, strata_channel_set_t **out)
{
    if (!s || !out)
        return STRATA_ERR_ARG;
    strata_channel_set_t *set = channel_alloc(s->channels, sizeof(*set));
    if (!set)
        return STRATA_ERR_NOMEM;
    set->ch = s->channels;
    st_list_init(&set->ready);
    *out = set;
    return STRATA_OK;
}

int strata_channel_set_destroy(strata_channel_set_t *set)
{
    if (!set)
        return STRATA_ERR_ARG;
    if (set->n)
        return STRATA_ERR_STATE;
    channel_free(set->ch, set, sizeof(*set));
    return STRATA_OK;
}

void channel_set_ready(strata_channel_receiver_t *c)
{
    if (!c->set || c->is_ready)
        return;
    c->is_ready = true;
    st_list_append(&c->set->ready, &c->ready);
}

static void set_unready(strata_channel_receiver_t *c)
{
    if (c->is_ready)
        st_list_remove(&c->ready);
    c->is_ready = false;
}

void channel_set_leave(strata_channel_receiver_t *c)
{
    set_unready(c);
    if (c->set)
        c->set->n--;
    c->set = NULL;
}

int strata_channel_set_add(strata_channel_set_t *set, strata_channel_receiver_t *c)
{
    if (!set || !c || c->ch != set->ch)
        return STRATA_ERR_ARG;
    st_worker_lock(set->ch->w);
    int rc = c->set ? STRATA_ERR_STATE : STRATA_OK;
    if (rc == STRATA_OK) {
        c->set = set;
        set->n++;
        channel_set_ready(c); /* the next look says */
    }
    st_worker_unlock(set->ch->w);
    return rc;
}

int strata_channel_set_remove(strata_channel_set_t *set, strata_channel_receiver_t *c)
{
    if (!set || !c || c->set != set)
        return STRATA_ERR_ARG;
    st_worker_lock(set->ch->w);
    channel_set_leave(c);
    st_worker_unlock(set->ch->w);
    return STRATA_OK;
}

/* Whether peek would not give STRATA_ERR_AGAIN, or a long message may begin to move. */
static bool set_has_news(const strata_channel_receiver_t *c)
{
    const struct st_landing_in *in = st_landing_receiver_in(c->landing);

    if (c->rc != STRATA_OK)
        return true;
    if (c->coming)
        return channel_in_has_news(c->coming);
    return in->ready || in->ended || in->rc != STRATA_OK;
}

struct set_call {
    strata_channel_set_t *set;
    strata_channel_receiver_t *found;
};

static int set_next(void *arg)
{
    struct set_call *call = arg;
    strata_channel_set_t *set = call->set;

    if (set->n == 0)
        return STRATA_CHANNEL_ENDED;
    while (!st_list_empty(&set->ready)) {
        strata_channel_receiver_t *c = ST_CONTAINER(set->ready.next, strata_channel_receiver_t, ready);
        set_unready(c);
        if (set_has_news(c)) {
            channel_set_ready(c); /* its next turn comes behind all others */
            call->found = c;
            return STRATA_OK;
        }
    }
    return STRATA_ERR_AGAIN;
}

int strata_channel_set_next(strata_channel_set_t *set, int64_t limit_ms, strata_channel_receiver_t **out)
{
    struct set_call call = {.set = set};

    if (!set || !out)
        return STRATA_ERR_ARG;
    int rc = channel_try(set->ch, set_next, &call, limit_ms);
    if (rc == STRATA_OK)
        *out = call.found;
    return rc;
}

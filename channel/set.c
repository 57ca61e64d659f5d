/* Sets of receiving ends: one call waits for any of them. A list holds the ends that may have something to take, so the
 * cost of a call grows with these, not with the ends of the set. */
#include <stdlib.h>

#include "channel/long.h"
#include "channel/slots.h"
#include "framework/base/context.h"

struct strata_channel_set {
    struct channels *ch;
    struct st_node ready; /* ends that may have something, in the order of their turns */
    uint32_t n;           /* ends in the set */
    uint32_t n_ready;     /* ends in the list */
};

/* Ends of mapped rings that stay in the list though they have nothing, so that their senders need not tell. */
#define SET_LOOKED 8u

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
    c->set->n_ready++;
    st_list_append(&c->set->ready, &c->ready);
}

static void set_unready(strata_channel_receiver_t *c)
{
    if (!c->is_ready)
        return;
    st_list_remove(&c->ready);
    c->set->n_ready--;
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
static bool set_has_news(strata_channel_receiver_t *c)
{
    if (c->rc != STRATA_OK)
        return true;
    if (c->coming)
        return channel_in_has_news(c->coming);
    return channel_slots_have_news(c);
}

struct set_call {
    strata_channel_set_t *set;
    strata_channel_receiver_t *found;
};

/* Ends without news leave the list, for `leaving` if their senders were just asked to tell. All are looked at, up to
 * the first that has news. */
static strata_channel_receiver_t *set_look(strata_channel_set_t *set, struct st_node *leaving)
{
    for (uint32_t n = set->n_ready; n > 0; n--) {
        strata_channel_receiver_t *c = ST_CONTAINER(set->ready.next, strata_channel_receiver_t, ready);
        bool news = set_has_news(c), stays = c->mapped.on && !c->coming && set->n_ready <= SET_LOOKED;
        set_unready(c);
        if (!news)
            channel_slots_return_rest(c);
        if (news || stays)
            channel_set_ready(c); /* its next turn comes behind all others */
        else if (channel_slots_listen(c))
            st_list_append(leaving, &c->ready);
        if (news)
            return c;
    }
    return NULL;
}

static int set_next(void *arg)
{
    struct set_call *call = arg;
    strata_channel_set_t *set = call->set;
    struct st_node leaving;

    if (set->n == 0)
        return STRATA_CHANNEL_ENDED;
    st_list_init(&leaving);
    call->found = set_look(set, &leaving);
    if (!st_list_empty(&leaving))
        mapped_barrier(); /* a message that the sender told nobody of is seen now */
    while (!st_list_empty(&leaving)) {
        strata_channel_receiver_t *c = ST_CONTAINER(leaving.next, strata_channel_receiver_t, ready);
        st_list_remove(&c->ready);
        if (!set_has_news(c))
            continue;
        channel_set_ready(c);
        call->found = call->found ? call->found : c;
    }
    return call->found ? STRATA_OK : STRATA_ERR_AGAIN;
}

/* Before a sleep. */
static void set_ask(void *arg)
{
    const struct set_call *call = arg;
    bool any = false;

    for (struct st_node *n = call->set->ready.next; n != &call->set->ready; n = n->next)
        any |= channel_slots_listen(ST_CONTAINER(n, strata_channel_receiver_t, ready));
    if (any)
        mapped_barrier();
}

int strata_channel_set_next(strata_channel_set_t *set, int64_t limit_ms, strata_channel_receiver_t **out)
{
    struct set_call call = {.set = set};

    if (!set || !out)
        return STRATA_ERR_ARG;
    int rc = channel_try_asking(set->ch, set_next, set_ask, &call, limit_ms);
    if (rc == STRATA_OK)
        *out = call.found;
    return rc;
}

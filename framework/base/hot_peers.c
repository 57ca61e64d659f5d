/* Places of hot peers: granted, revoked, handed over. */
#include <stdlib.h>

#include <strata/sdk/hot_peers.h>

#define GENERATIONS 0x7fffu

int st_hot_create(struct st_hot *hot, const struct st_polling_set_config *config, uint32_t n_peers,
                  const struct st_hot_ops *ops, void *arg)
{
    uint32_t n = config->max_members;
    *hot = (struct st_hot){.n_places = n, .ops = ops, .arg = arg};
    if (n > ST_HOT_MOST)
        return STRATA_ERR_ARG;
    hot->places = calloc(n ? n : 1, sizeof(*hot->places));
    hot->order = calloc(n ? n : 1, sizeof(*hot->order));
    int rc = hot->places && hot->order ? st_polling_set_create(config, n_peers, &hot->set) : STRATA_ERR_NOMEM;
    if (rc != STRATA_OK)
        st_hot_destroy(hot);
    return rc;
}

void st_hot_destroy(struct st_hot *hot)
{
    if (hot->set)
        st_polling_set_destroy(hot->set);
    free(hot->places);
    free(hot->order);
    *hot = (struct st_hot){0};
}

/* Takes the order of polling from the set, of which revoked places are still members, and broken ones, too. */
static void hot_reorder(struct st_hot *hot)
{
    const uint32_t *places;
    uint32_t n, k = 0;
    st_polling_set_order(hot->set, &places, &n);
    for (uint32_t i = 0; i < n && k < hot->n_places; i++)
        if (places[i] < hot->n_places && hot->places[places[i]].state != ST_HOT_BROKEN)
            hot->order[k++] = places[i];
    hot->n_order = k;
    if (hot->ops->ordered)
        hot->ops->ordered(hot->arg);
}

/* The place is given to nobody; others may be ready. */
static void hot_unusable(struct st_hot *hot, uint32_t i)
{
    hot->places[i] = (struct st_hot_place){.peer = ST_HOT_NONE, .state = ST_HOT_UNUSABLE};
    st_polling_set_unusable(hot->set, i);
    hot->off |= ++hot->n_unusable == hot->n_places;
}

static void hot_grant(struct st_hot *hot, uint32_t i, uint32_t peer)
{
    struct st_hot_place *place = &hot->places[i];
    if (place->state != ST_HOT_FREE)
        return;
    if (hot->ops->ready(hot->arg, i, peer) != STRATA_OK) {
        hot_unusable(hot, i);
        return;
    }
    *place = (struct st_hot_place){.peer = peer, .state = ST_HOT_GRANTED};
    hot->generation = (hot->generation + 1) & GENERATIONS;
    st_polling_set_joined(hot->set, peer, i);
    hot_reorder(hot);
    hot->ops->tell(hot->arg, peer, hot->generation << 16 | (i + 1));
}

static void hot_revoke(struct st_hot *hot, uint32_t i)
{
    struct st_hot_place *place = &hot->places[i];
    if (place->state != ST_HOT_GRANTED)
        return;
    hot->ops->tell(hot->arg, place->peer, 0);
    place->state = ST_HOT_REVOKED;
    hot->n_revoked++;
}

void st_hot_revoke_all(struct st_hot *hot)
{
    for (uint32_t i = 0; i < hot->n_places; i++)
        hot_revoke(hot, i);
}

void st_hot_give_up(struct st_hot *hot, uint32_t i)
{
    hot->off = true;
    hot_revoke(hot, i);
}

void st_hot_shared_arrival(struct st_hot *hot, uint32_t peer)
{
    uint32_t i = 0;
    if (!hot->set || hot->off)
        return;
    switch (st_polling_set_shared_arrival(hot->set, peer, &i)) {
    case ST_POLL_PROMOTE:
        hot_grant(hot, i, peer);
        break;
    case ST_POLL_EVICT:
        hot_revoke(hot, i);
        break;
    case ST_POLL_STAY:
        break;
    }
}

void st_hot_nudge(struct st_hot *hot, st_hot_nudge_fn nudge)
{
    for (uint32_t i = 0; i < hot->n_places; i++) {
        struct st_hot_place *place = &hot->places[i];
        if (place->state == ST_HOT_REVOKED && !place->nudged)
            place->nudged = nudge(hot->arg, i, place->peer) != STRATA_ERR_AGAIN;
    }
}

/* The peer uses the place no more, whatever its word was. */
static void hot_end(struct st_hot *hot, struct st_hot_place *place, enum st_hot_state state)
{
    hot->ops->tell(hot->arg, place->peer, 0);
    if (place->state == ST_HOT_REVOKED)
        hot->n_revoked--;
    place->state = (uint8_t)state;
}

void st_hot_left(struct st_hot *hot, uint32_t i)
{
    hot_end(hot, &hot->places[i], ST_HOT_FREE);
    st_polling_set_left(hot->set, i);
    hot_reorder(hot);
}

void st_hot_broken(struct st_hot *hot, uint32_t i)
{
    hot_end(hot, &hot->places[i], ST_HOT_BROKEN); /* stays a member of the set, so that nobody else is given it */
    hot_reorder(hot);
}

uint32_t st_hot_place_of(const struct st_hot *hot, uint32_t peer)
{
    for (uint32_t i = 0; i < hot->n_places; i++)
        if (hot->places[i].state != ST_HOT_FREE && hot->places[i].peer == peer)
            return i;
    return ST_HOT_NONE;
}

size_t st_hot_bytes(const struct st_hot *hot)
{
    return hot->n_places * (sizeof(*hot->places) + sizeof(*hot->order)) +
           (hot->set ? st_polling_set_bytes(hot->set) : 0);
}

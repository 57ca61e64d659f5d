/* Which peers deserve a private ring. After "High Performance RDMA-Based MPI Implementation over InfiniBand": section 3
 * introduces the RDMA polling set, section 4.6 ("Polling Set Management") leaves the policy open. The paper's simple
 * method admits the first N peers that send; ours is the dynamic one that it names as future work: the communication
 * pattern is watched, in memory that does not depend on the number of peers.
 *
 * Peers outside the set are counted in a small set-associative table. A newcomer replaces the coldest entry of its
 * bucket, so that frequent senders survive. All counts are halved once per window of arrivals: what counts is recent.
 * The polling order (also left open in section 4.6) sorts itself: a member that had an arrival changes places with the
 * colder one before it.
 *
 * A slot that is taken from a member is kept for the peer that it is taken for, its heir, until counts are halved: the
 * evicted peer, which was hot as well, would often be the first to ask. */
#include <strata/sdk/hint.h>
#include <strata/sdk/polling_set.h>

#include <stdlib.h>

#define WAYS 4u
#define NONE UINT32_MAX

struct counter {
    uint32_t peer; /* NONE: free */
    uint32_t count;
};

enum member_state { FREE, RESERVED, MEMBER, LEAVING };

struct member {
    uint32_t peer;
    uint32_t count;
    uint32_t place; /* index in order, when MEMBER or LEAVING */
    uint32_t heir;  /* LEAVING, FREE: the peer that gets the slot; NONE: whoever asks */
    enum member_state state;
    bool favoured;
};

struct st_polling_set {
    struct st_polling_set_config config;
    const struct st_peer_ranges *favoured; /* NULL: nobody */
    uint32_t n_peers;
    uint32_t arrivals; /* since the last halving */
    uint32_t n_order;
    uint32_t bucket_mask;
    uint32_t *order;          /* slots */
    struct member *members;   /* by slot */
    struct counter *counters; /* (bucket_mask + 1) * WAYS */
};

static uint32_t polling_set_buckets_for(const struct st_polling_set_config *config, uint32_t n_peers)
{
    uint64_t want = 4ull * config->max_members;
    if (want > n_peers)
        want = n_peers;
    uint32_t n = 4;
    while ((uint64_t)n * WAYS < 2 * want && n < 4096)
        n *= 2;
    return n;
}

int st_polling_set_create(const struct st_polling_set_config *config, uint32_t n_peers, struct st_polling_set **out)
{
    if (config->promote_after == 0 || config->window == 0 || config->max_members >= NONE / 8)
        return STRATA_ERR_ARG;
    struct st_polling_set *set = calloc(1, sizeof(*set));
    if (!set)
        return STRATA_ERR_NOMEM;
    uint32_t n = config->max_members ? config->max_members : 1, buckets = polling_set_buckets_for(config, n_peers);
    set->config = *config;
    set->n_peers = n_peers;
    set->bucket_mask = buckets - 1;
    set->order = calloc(n, sizeof(*set->order));
    set->members = calloc(n, sizeof(*set->members));
    set->counters = malloc((size_t)buckets * WAYS * sizeof(*set->counters));
    if (!set->order || !set->members || !set->counters) {
        st_polling_set_destroy(set);
        return STRATA_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < buckets * WAYS; i++)
        set->counters[i] = (struct counter){NONE, 0};
    for (uint32_t i = 0; i < n; i++)
        set->members[i].heir = NONE;
    *out = set;
    return STRATA_OK;
}

void st_polling_set_destroy(struct st_polling_set *set)
{
    if (!set)
        return;
    free(set->order);
    free(set->members);
    free(set->counters);
    free(set);
}

void st_polling_set_favour(struct st_polling_set *set, const struct st_peer_ranges *peers)
{
    set->favoured = peers->n > 0 ? peers : NULL; /* not looked at with each arrival */
}

static void polling_set_count_arrivals(struct st_polling_set *set, uint32_t n)
{
    set->arrivals += n;
    if (ST_LIKELY(set->arrivals < set->config.window))
        return;
    set->arrivals = 0;
    for (uint32_t i = 0; i < (set->bucket_mask + 1) * WAYS; i++) {
        struct counter *c = &set->counters[i];
        if ((c->count >>= 1) == 0)
            c->peer = NONE;
    }
    for (uint32_t i = 0; i < set->config.max_members; i++) {
        set->members[i].count >>= 1;
        if (set->members[i].state == FREE)
            set->members[i].heir = NONE;
    }
}

/* Counts one message of a peer outside the set; returns its entry. */
static struct counter *polling_set_count_peer(struct st_polling_set *set, uint32_t peer)
{
    uint32_t bucket = ((peer * 2654435769u) >> 16) & set->bucket_mask;
    struct counter *c = &set->counters[bucket * WAYS], *coldest = c;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (c[i].peer == peer) {
            c[i].count++;
            return &c[i];
        }
        if (c[i].peer == NONE || (coldest->peer != NONE && c[i].count < coldest->count))
            coldest = &c[i];
    }
    *coldest = (struct counter){peer, 1};
    return coldest;
}

/* Whether member a is evicted before b: first those that are not favoured, then the lowest count. */
static bool polling_set_colder(const struct member *a, const struct member *b)
{
    return a->favoured != b->favoured ? b->favoured : a->count < b->count;
}

enum st_polling_verdict st_polling_set_shared_arrival(struct st_polling_set *set, uint32_t peer, uint32_t *slot)
{
    if (peer >= set->n_peers)
        return ST_POLL_STAY;
    struct counter *c = polling_set_count_peer(set, peer);
    uint32_t count = c->count, coldest = NONE, empty = NONE;
    bool favoured = set->favoured && st_peer_ranges_has(set->favoured, peer), waits = false;
    polling_set_count_arrivals(set, 1);
    if (count < set->config.promote_after && !favoured)
        return ST_POLL_STAY;
    for (uint32_t i = 0; i < set->config.max_members; i++) {
        struct member *m = &set->members[i];
        if (m->state == FREE) {
            if (m->heir == peer || (empty == NONE && m->heir == NONE))
                empty = i;
            continue;
        }
        if (m->peer == peer) {
            /* In the set, or about to be: what it sends by the shared path (a full ring, a hand-over) keeps it hot. */
            m->count++;
            return ST_POLL_STAY;
        }
        waits |= m->state == LEAVING && m->heir == peer;
        if (m->state == MEMBER && (coldest == NONE || polling_set_colder(m, &set->members[coldest])))
            coldest = i;
    }
    if (empty != NONE) {
        set->members[empty] =
            (struct member){.peer = peer, .count = count, .heir = NONE, .state = RESERVED, .favoured = favoured};
        *slot = empty;
        return ST_POLL_PROMOTE;
    }
    if (coldest == NONE || waits)
        return ST_POLL_STAY;
    struct member *m = &set->members[coldest];
    /* Handing a ring over costs a round trip: the newcomer must be hotter by a margin, or two equals would take the
     * ring from each other for ever. */
    if (m->favoured != favoured ? m->favoured : count <= m->count + set->config.promote_after)
        return ST_POLL_STAY;
    m->state = LEAVING;
    m->heir = peer;
    *slot = coldest;
    return ST_POLL_EVICT;
}

bool st_polling_set_ring_arrival(struct st_polling_set *set, uint32_t slot, uint32_t n)
{
    struct member *m = &set->members[slot];
    bool moved = false;

    m->count += n;
    if (m->place > 0 && (m->state == MEMBER || m->state == LEAVING)) {
        uint32_t before = set->order[m->place - 1];
        if (set->members[before].count < m->count) {
            set->members[before].place = m->place;
            set->order[m->place] = before;
            set->order[--m->place] = slot;
            moved = true;
        }
    }
    polling_set_count_arrivals(set, n);
    return moved;
}

void st_polling_set_joined(struct st_polling_set *set, uint32_t peer, uint32_t slot)
{
    struct member *m = &set->members[slot];
    if (m->state == FREE || m->state == RESERVED) {
        m->place = set->n_order++;
        set->order[m->place] = slot;
    }
    m->peer = peer;
    m->heir = NONE;
    m->state = MEMBER;
}

void st_polling_set_left(struct st_polling_set *set, uint32_t slot)
{
    struct member *m = &set->members[slot];
    if (m->state == MEMBER || m->state == LEAVING) {
        set->n_order--;
        for (uint32_t i = m->place; i < set->n_order; i++) {
            set->order[i] = set->order[i + 1];
            set->members[set->order[i]].place = i;
        }
    }
    *m = (struct member){.heir = m->state == LEAVING ? m->heir : NONE, .state = FREE};
}

void st_polling_set_unusable(struct st_polling_set *set, uint32_t slot)
{
    set->members[slot] = (struct member){.peer = NONE, .heir = NONE, .state = RESERVED};
}

void st_polling_set_order(const struct st_polling_set *set, const uint32_t **slots, uint32_t *n)
{
    *slots = set->order;
    *n = set->n_order;
}

size_t st_polling_set_bytes(const struct st_polling_set *set)
{
    size_t n = set->config.max_members ? set->config.max_members : 1;
    return sizeof(*set) + n * (sizeof(*set->order) + sizeof(*set->members)) +
           (size_t)(set->bucket_mask + 1) * WAYS * sizeof(*set->counters);
}

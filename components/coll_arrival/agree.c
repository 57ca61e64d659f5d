/* The first call of a communicator where blocks may go by the leaders of nodes. Cards, by an allgather of the next
 * component, tell all members who is on which node and what room each leader has. Each then tells member 0 by a message
 * whether it has mapped its leader's area, and member 0 tells all whether all have. Calls wait until then. */
#include <stdlib.h>
#include <unistd.h>

#include <strata/sdk/rte.h>
#include "slot.h"

static bool agree_is_local(const struct slot *s, int member)
{
    struct st_rte *rte = st_rte(s->a->base.context);
    return member == s->base.group->comm->rank || rte->ops->is_local(rte, slot_job_rank(s, member));
}

/* A leader's area as large as the parameters allow. */
static void agree_make_card(struct slot *s, struct node_card *card)
{
    struct arrival *a = s->a;
    struct nodes *nodes = s->nodes;
    int n_local = 0;
    *card = (struct node_card){.leader = -1, .pid = (uint32_t)getpid()};
    for (int m = 0; m < s->n; m++)
        if (agree_is_local(s, m)) {
            card->leader = card->leader < 0 ? m : card->leader;
            n_local++;
        }
    if (card->leader != s->base.group->comm->rank)
        return;
    st_worker_lock(a->w);
    size_t used = a->cell_bytes + a->area_bytes, left = used < a->config.memory ? a->config.memory - used : 0;
    size_t limit = arrival_node_limit(s->n, n_local, a->config.shm_block, left);
    arrival_node_layout(s->n, n_local, limit, &nodes->layout);
    a->area_bytes += limit ? nodes->layout.bytes : 0;
    st_worker_unlock(a->w);
    if (limit > 0 && arrival_node_area(nodes, nodes->layout.bytes, card) != STRATA_OK) {
        st_worker_lock(a->w);
        a->area_bytes -= nodes->layout.bytes;
        st_worker_unlock(a->w);
        limit = 0;
    }
    card->limit = limit;
}

int arrival_agree_begin(struct slot *s, strata_coll_request_t **req)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLGATHER);
    struct node_card *own = &s->nodes->cards[s->base.group->comm->rank];
    if (own->pid == 0) /* else it could not begin before */
        agree_make_card(s, own);
    c.send = STRATA_IN_PLACE;
    c.recv = s->nodes->cards;
    c.count = sizeof(*own);
    return st_coll_start_below(&s->base, &c, req);
}

/* The longest block for which every leader has room, the same at all members. */
static size_t agree_limit(struct slot *s)
{
    struct nodes *nodes = s->nodes;
    size_t limit = SIZE_MAX;
    if (!arrival_nodes_sort(nodes, s->n, s->base.group->comm->rank) || nodes->n_nodes == s->n)
        return 0;
    for (int m = 0; m < s->n; m++)
        if (node_leader_of(nodes, m) == m && nodes->cards[m].limit < limit)
            limit = (size_t)nodes->cards[m].limit;
    return limit;
}

/* Without the lock: maps the area of this node. */
static bool agree_map(struct slot *s)
{
    struct nodes *nodes = s->nodes;
    const struct node_card *card = &nodes->cards[nodes->leader];
    struct node_layout layout;
    arrival_node_layout(s->n, nodes->n_local, (size_t)card->limit, &layout);
    if (nodes->fd >= 0)
        return layout.bytes == nodes->layout.bytes;
    nodes->layout = layout;
    if (card->limit > ST_SHARED_MAP_MOST || card->name.length != nodes->layout.bytes ||
        st_shared_map(card->pid, &card->name, &nodes->mapping) != STRATA_OK)
        return false;
    nodes->area = nodes->mapping.memory;
    return true;
}

/* ---- votes; with the lock held ---- */

static void agree_end(struct slot *s, bool all)
{
    s->nodes->stage = NODES_AGREED;
    if (!all || slot_failed(s))
        s->nodes->limit = 0;
    s->a->counted[COUNT_REFUSED_AREAS] += !all;
}

static void agree_tell(struct slot *s, int member, enum arrival_type type, bool yes)
{
    const strata_comm_t *comm = s->base.group->comm;
    struct wire_stop vote = {.type = (uint8_t)type, .yes = yes, .comm = comm->id, .src = comm->rank};
    arrival_tell(s->a, s->member[member].peer, &vote, sizeof(vote), NULL, 0);
}

/* At member 0. */
static void agree_vote(struct slot *s, bool yes)
{
    struct nodes *nodes = s->nodes;
    nodes->refused = nodes->refused || !yes;
    if (++nodes->n_votes < s->n)
        return;
    for (int m = 1; m < s->n; m++)
        agree_tell(s, m, ARRIVAL_AGREED, !nodes->refused);
    agree_end(s, !nodes->refused);
}

const char *arrival_agree_heard(struct slot *s, int member, const struct wire_stop *h)
{
    struct nodes *nodes = s->nodes;
    int me = s->base.group->comm->rank;
    if (slot_failed(s))
        return NULL;
    if (!nodes || nodes->stage == NODES_AGREED)
        return "a vote on nodes that nobody asked for";
    if (h->type == ARRIVAL_AGREED) {
        if (member != 0 || nodes->stage != NODES_VOTES)
            return "a result of votes before the vote";
        agree_end(s, h->yes);
        return NULL;
    }
    int own = nodes->stage == NODES_VOTES;
    if (me != 0 || nodes->n_votes - own >= s->n - 1)
        return "a vote too many";
    agree_vote(s, h->yes);
    return NULL;
}

/* ---- cards ---- */

bool arrival_agree_due(const struct slot *s)
{
    const struct nodes *nodes = s->nodes;
    return nodes && nodes->cards_req && !nodes->outside &&
           atomic_load_explicit(&nodes->cards_req->done, memory_order_acquire);
}

void arrival_agree_outside(struct slot *s)
{
    struct nodes *nodes = s->nodes;
    strata_coll_request_t *req = nodes->cards_req;
    nodes->outside = true;
    st_worker_unlock(s->a->w);
    size_t limit = req->error == STRATA_OK ? agree_limit(s) : 0;
    bool mapped = limit > 0 && agree_map(s);
    st_worker_lock(s->a->w);
    nodes->cards_req = NULL;
    st_worker_unlock(s->a->w);
    req->free(req); /* others look at it under the lock until it is forgotten */
    st_worker_lock(s->a->w);
    nodes->outside = false;
    nodes->limit = limit;
    nodes->stage = NODES_VOTES;
    if (limit == 0 || slot_failed(s))
        agree_end(s, true);
    else if (s->base.group->comm->rank == 0)
        agree_vote(s, mapped);
    else
        agree_tell(s, 0, ARRIVAL_VOTE, mapped);
}

/* Communicators: made at their first collective, landing cells at the first call that needs them. */
#include "slot.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_CELL = 64 };

static size_t slot_bytes(const struct slot *s)
{
    size_t nodes = s->nodes ? sizeof(*s->nodes) + (size_t)s->n * (sizeof(struct node_card) + 3 * sizeof(int)) : 0;
    return sizeof(*s) + (size_t)s->n_all * sizeof(s->member[0]) + nodes;
}

/* One that no other slot has: notices say no more. */
static uint32_t slot_new_id(struct arrival *a)
{
    uint32_t id;
    do
        id = a->next_id++ % NOTICE_IDS;
    while (slot_of_id(a, id));
    return id;
}

int slot_attach(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out)
{
    struct arrival *a = (struct arrival *)coll;
    int n = group->comm->size, rc = STRATA_OK;
    if (n > a->config.ranks) /* no call will come */
        n = 0;
    bool nodes = n > 1 && arrival_form_has_nodes((enum arrival_form)a->config.form);
    int n_all = nodes ? 2 * n : n;
    struct slot *s = calloc(1, sizeof(*s) + (size_t)n_all * sizeof(s->member[0]));
    if (!s)
        return STRATA_ERR_NOMEM;
    s->base = (struct st_coll_slot){coll, group};
    s->a = a;
    s->n = s->n_cells = n;
    s->n_all = n_all;
    s->nodes = nodes ? arrival_nodes_make(n) : NULL;
    if (nodes && !s->nodes)
        rc = STRATA_ERR_NOMEM;
    s->lost = -1;
    s->id = slot_new_id(a);
    s->epoch = (uint16_t)a->config.first_epoch;
    st_list_init(&s->ops);
    for (int i = 0; i < n_all && rc == STRATA_OK; i++)
        if (slot_rank(s, i) != group->comm->rank)
            rc = st_worker_peer(a->w, slot_job_rank(s, slot_rank(s, i)), &s->member[i].peer);
    if (rc != STRATA_OK) {
        arrival_nodes_free(s->nodes);
        free(s);
        return rc;
    }
    a->bytes += slot_bytes(s);
    st_list_append(&a->slots, &s->node);
    early_replay(s);
    *out = &s->base;
    return STRATA_OK;
}

void slot_detach(struct st_coll_slot *base)
{
    struct slot *s = (struct slot *)base;
    struct arrival *a = s->a;
    st_worker_lock(a->w);
    st_list_remove(&s->node);
    if (slot_failed(s) && s->n > 0)
        early_retire(a, base->group->comm->id);
    a->cell_bytes -= 2 * (size_t)s->n_cells * s->cell;
    a->area_bytes -= s->nodes && s->nodes->fd >= 0 ? s->nodes->layout.bytes : 0;
    a->bytes -= slot_bytes(s);
    st_worker_unlock(a->w);
    arrival_nodes_free(s->nodes);
    free(s->cells);
    free(s);
}

void slot_make_cells(struct slot *s)
{
    struct arrival *a = s->a;
    bool leads = s->nodes && s->nodes->limit > 0 && s->nodes->leader == s->base.group->comm->rank;
    s->n_cells = leads ? s->n_all : s->n;
    size_t cell = a->config.scheme == SCHEME_ZCOPY ? 0 : a->config.cell, each = 2 * (size_t)s->n_cells;
    size_t used = a->cell_bytes + a->area_bytes, left = used < a->config.memory ? a->config.memory - used : 0;
    while (cell * each > left)
        cell = cell / 2 >= LEAST_CELL ? cell / 2 : 0;
    s->cells = cell ? malloc(cell * each) : NULL;
    s->cell = s->cells ? (uint32_t)cell : 0;
    a->cell_bytes += s->cell * each;
    s->begun = true;
}

struct slot *slot_of_comm(struct arrival *a, uint32_t comm)
{
    for (struct st_node *n = a->slots.prev; n != &a->slots; n = n->prev) {
        struct slot *s = ST_CONTAINER(n, struct slot, node);
        if (s->base.group->comm->id == comm)
            return s;
    }
    return NULL;
}

struct slot *slot_of_id(struct arrival *a, uint32_t id)
{
    for (struct st_node *n = a->slots.prev; n != &a->slots; n = n->prev) {
        struct slot *s = ST_CONTAINER(n, struct slot, node);
        if (s->id == id)
            return s;
    }
    return NULL;
}

int slot_member_of(const struct slot *s, int job_rank)
{
    for (int i = 0; i < s->n; i++)
        if (s->member[i].peer && s->member[i].peer->rank == job_rank)
            return i;
    return -1;
}

bool slot_heard(struct slot *s, int entry, uint16_t epoch)
{
    struct member *p = &s->member[slot_rank(s, entry)];
    bool before = slot_may_send(s, entry);
    int64_t begun = (int64_t)s->call + 1 + (int16_t)(uint16_t)(epoch - s->epoch);
    if (begun > 0 && (uint64_t)begun > p->seen)
        p->seen = (uint64_t)begun;
    return !before && slot_may_send(s, entry);
}

void slot_next_epoch(struct slot *s, enum call_reach reach)
{
    uint8_t skew = 0;
    for (int i = 0; i < s->n_all; i++) {
        struct came *came = &s->member[i].came[s->epoch & 1u];
        skew = came->waited > skew ? came->waited : skew;
        came->waited = 0;
        came->total = came->got = 0;
        came->begun = came->in_cell = came->whole = false;
        if (came->advert.epoch == s->epoch) /* else of the next call of that parity: its sender is ahead */
            came->advertised = false;
    }
    if (reach == REACH_ALL) /* else members have heard of different ones */
        s->skew = skew;
    if (reach != REACH_ROOT)
        s->all_begun = s->call + 1;
    s->epoch++;
    s->call++;
}

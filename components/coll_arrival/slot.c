/* Communicators: made at their first collective, landing cells at the first call that needs them. */
#include "slot.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_CELL = 64 };

static size_t slot_bytes(const struct slot *s)
{
    return sizeof(*s) + (size_t)s->n * sizeof(s->member[0]);
}

int slot_attach(struct st_coll *coll, struct st_coll_group *group, struct st_coll_slot **out)
{
    struct arrival *a = (struct arrival *)coll;
    int n = group->comm->size, rc = STRATA_OK;
    if (n > a->config.ranks) /* no call will come */
        n = 0;
    struct slot *s = calloc(1, sizeof(*s) + (size_t)n * sizeof(s->member[0]));
    if (!s)
        return STRATA_ERR_NOMEM;
    s->base = (struct st_coll_slot){coll, group};
    s->a = a;
    s->n = n;
    s->lost = -1;
    s->id = a->next_id++ % NOTICE_IDS;
    s->epoch = (uint16_t)a->config.first_epoch;
    st_list_init(&s->ops);
    for (int i = 0; i < n && rc == STRATA_OK; i++)
        if (i != group->comm->rank)
            rc = st_worker_peer(a->w, slot_job_rank(s, i), &s->member[i].peer);
    if (rc != STRATA_OK) {
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
    a->cell_bytes -= 2 * (size_t)s->n * s->cell;
    a->bytes -= slot_bytes(s);
    st_worker_unlock(a->w);
    free(s->cells);
    free(s);
}

void slot_make_cells(struct slot *s)
{
    struct arrival *a = s->a;
    size_t cell = a->config.scheme == SCHEME_ZCOPY ? 0 : a->config.cell, each = 2 * (size_t)s->n;
    size_t left = a->cell_bytes < a->config.memory ? a->config.memory - a->cell_bytes : 0;
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

void slot_next_epoch(struct slot *s)
{
    for (int i = 0; i < s->n; i++) {
        struct came *came = &s->member[i].came[s->epoch & 1u];
        came->total = came->got = 0;
        came->begun = came->in_cell = came->whole = came->advertised = false;
    }
    s->epoch++;
}

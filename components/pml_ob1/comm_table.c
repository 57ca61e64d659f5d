/* The table of matching contexts, by id. */
#include <stdlib.h>
#include "comm.h"
#include "ob1.h"

static struct ob1_comm **ob1_comm_slot(struct ob1 *pml, uint32_t id)
{
    return &pml->comms[id & pml->comms_mask];
}

struct ob1_comm *ob1_comm_find(struct ob1 *pml, uint32_t id)
{
    struct ob1_comm *c = pml->comms ? *ob1_comm_slot(pml, id) : NULL;

    while (c && c->head.id != id)
        c = c->next;
    if (c)
        pml->by_id[id % OB1_COMM_CACHE] = c;
    return c;
}

int ob1_comm_table_room(struct ob1 *pml)
{
    uint32_t n = pml->comms ? (pml->comms_mask + 1) * 2 : 16, old = pml->comms ? pml->comms_mask + 1 : 0;
    struct ob1_comm **from = pml->comms, **to;

    if (old && pml->n_comms < old)
        return STRATA_OK;
    to = calloc(n, sizeof(struct ob1_comm *));
    if (!to)
        return old ? STRATA_OK : STRATA_ERR_NOMEM;
    pml->comms = to;
    pml->comms_mask = n - 1;
    for (uint32_t i = 0; i < old; i++) {
        for (struct ob1_comm *c = from[i], *next; c; c = next) {
            next = c->next;
            c->next = *ob1_comm_slot(pml, c->head.id);
            *ob1_comm_slot(pml, c->head.id) = c;
        }
    }
    free(from);
    return STRATA_OK;
}

void ob1_comm_table_add(struct ob1 *pml, struct ob1_comm *c)
{
    c->next = *ob1_comm_slot(pml, c->head.id);
    *ob1_comm_slot(pml, c->head.id) = c;
    pml->by_id[c->head.id % OB1_COMM_CACHE] = c;
    pml->n_comms++;
}

void ob1_comm_table_remove(struct ob1 *pml, struct ob1_comm *c)
{
    struct ob1_comm **at = ob1_comm_slot(pml, c->head.id);

    while (*at && *at != c)
        at = &(*at)->next;
    if (*at) {
        *at = c->next;
        pml->n_comms--;
    }
    if (pml->by_id[c->head.id % OB1_COMM_CACHE] == c)
        pml->by_id[c->head.id % OB1_COMM_CACHE] = NULL;
}

int ob1_comm_rank_of(const struct ob1_comm *c, int job_rank)
{
    if (!c->head.world)
        return job_rank < c->head.size ? job_rank : -1;
    for (int i = 0; i < c->head.size; i++)
        if (c->head.world[i] == job_rank)
            return i;
    return -1;
}

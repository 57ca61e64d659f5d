/* Peers of a module: found by rank, made, and marked as failed. */
#include "module.h"

#include <stdlib.h>

struct ib_peer *ib_peer_find(const struct ib_module *m, int rank)
{
    return rank >= 0 ? st_rank_table_get(&m->peers.table, (uint32_t)rank) : NULL;
}

struct ib_peer *ib_peer_get(struct ib_module *m, int rank)
{
    struct ib_peer *p = ib_peer_find(m, rank);

    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p || st_rank_table_set(&m->peers.table, (uint32_t)rank, p) != STRATA_OK) {
        free(p);
        return NULL;
    }
    p->ep = (struct st_btl_endpoint){.btl = &m->btl, .rank = rank, .caps = m->btl.caps};
    p->next = m->peers.all;
    m->peers.all = p;
    m->peers.n++;
    return p;
}

void ib_peer_broken(struct ib_peer *p, const char *why)
{
    struct ib_module *m = ib_module_of(p);

    if (p->error || p->state == IB_FAILED || p->state == IB_GONE)
        return;
    p->error = why;
    m->peers.broken = true;
    ib_attend(&m->poll);
}

/* Queue pairs by number: a hash table with open addressing. */
#include "peer/peer.h"

#include <stdlib.h>
#include <strata/sdk/hash.h>
#include <strata/strata.h>

int ib_qp_map_init(struct ib_qp_map *map)
{
    map->n = 0;
    map->mask = 63;
    map->slot = calloc(map->mask + 1, sizeof *map->slot);
    return map->slot ? STRATA_OK : STRATA_ERR_NOMEM;
}

void ib_qp_map_destroy(struct ib_qp_map *map)
{
    free(map->slot);
    map->slot = NULL;
}

static uint32_t map_place(const struct ib_qp_map *map, uint32_t qpn)
{
    return (uint32_t)(st_hash(qpn) >> 32) & map->mask;
}

struct ib_qp *ib_qp_map_find(const struct ib_qp_map *map, uint32_t qpn)
{
    for (uint32_t i = map_place(map, qpn); map->slot[i]; i = (i + 1) & map->mask)
        if (map->slot[i]->number == qpn)
            return map->slot[i];
    return NULL;
}

static void map_insert(struct ib_qp_map *map, struct ib_qp *q)
{
    uint32_t i = map_place(map, q->number);

    while (map->slot[i])
        i = (i + 1) & map->mask;
    map->slot[i] = q;
    map->n++;
}

int ib_qp_map_add(struct ib_qp_map *map, struct ib_qp *q)
{
    struct ib_qp_map old = *map;

    if (2 * (map->n + 1) > map->mask + 1) {
        map->mask = 2 * old.mask + 1;
        map->slot = calloc(map->mask + 1, sizeof *map->slot);
        if (!map->slot) {
            *map = old;
            return STRATA_ERR_NOMEM;
        }
        map->n = 0;
        for (uint32_t i = 0; i <= old.mask; i++)
            if (old.slot[i])
                map_insert(map, old.slot[i]);
        free(old.slot);
    }
    map_insert(map, q);
    return STRATA_OK;
}

/* Entries that it had pushed on move back. */
void ib_qp_map_remove(struct ib_qp_map *map, uint32_t qpn)
{
    uint32_t i = map_place(map, qpn);

    while (map->slot[i] && map->slot[i]->number != qpn)
        i = (i + 1) & map->mask;
    if (!map->slot[i])
        return;
    map->slot[i] = NULL;
    map->n--;
    for (i = (i + 1) & map->mask; map->slot[i]; i = (i + 1) & map->mask) {
        struct ib_qp *q = map->slot[i];
        map->slot[i] = NULL;
        map->n--;
        map_insert(map, q);
    }
}

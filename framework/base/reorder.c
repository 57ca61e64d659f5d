/* Objects ahead of their turn: see reorder.h. */
#include <stdlib.h>
#include <strata/sdk/reorder.h>

#define FIRST 8u

static struct st_reorder *reorder_grow(struct st_reorder *old, uint32_t distance, uint16_t next)
{
    uint32_t size = old ? (old->mask + 1) * 2 : FIRST;
    struct st_reorder *r;

    while (size <= distance)
        size *= 2;
    r = calloc(1, sizeof(*r) + size * sizeof(*r->slot));
    if (!r)
        return NULL;
    r->mask = size - 1;
    r->slot = (void **)(r + 1);
    if (old) {
        r->n = old->n;
        for (uint32_t i = 0; i <= old->mask; i++)
            r->slot[(next + i) & r->mask] = old->slot[(next + i) & old->mask];
        free(old);
    }
    return r;
}

int st_reorder_insert(struct st_reorder **at, uint16_t next, uint16_t seq, void *object)
{
    uint16_t distance = (uint16_t)(seq - next);
    struct st_reorder *r = *at;

    if (distance == 0 || distance >= ST_REORDER_WINDOW)
        return STRATA_ERR_PROTOCOL;
    if (!r || distance > r->mask) {
        r = reorder_grow(r, distance, next);
        if (!r)
            return STRATA_ERR_NOMEM;
        *at = r;
    }
    if (r->slot[seq & r->mask])
        return STRATA_ERR_PROTOCOL;
    r->slot[seq & r->mask] = object;
    r->n++;
    return STRATA_OK;
}

void *st_reorder_take(struct st_reorder **at, uint16_t next)
{
    struct st_reorder *r = *at;
    void *object = r ? r->slot[next & r->mask] : NULL;

    if (!object)
        return NULL;
    r->slot[next & r->mask] = NULL;
    if (--r->n == 0) {
        free(r);
        *at = NULL;
    }
    return object;
}

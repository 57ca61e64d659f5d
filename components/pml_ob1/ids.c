/* See ids.h. */
#include <stdlib.h>
#include "ids.h"

static int ob1_ids_grow(struct ob1_ids *ids)
{
    uint32_t n = ids->n ? ids->n * 2 : 16;
    struct ob1_id_slot *slots = realloc(ids->slots, n * sizeof(*slots));

    if (!slots)
        return STRATA_ERR_NOMEM;
    for (uint32_t i = ids->n; i < n; i++)
        slots[i] = (struct ob1_id_slot){.object = (void *)(uintptr_t)(i + 1), .generation = 1};
    ids->slots = slots;
    ids->free = ids->n;
    ids->n = n;
    return STRATA_OK;
}

uint64_t ob1_id_get(struct ob1_ids *ids, enum ob1_id_kind kind, void *object)
{
    uint32_t index;

    if (ids->free == ids->n && ob1_ids_grow(ids) != STRATA_OK)
        return 0;
    index = ids->free;
    ids->free = (uint32_t)(uintptr_t)ids->slots[index].object;
    ids->slots[index].object = object;
    ids->slots[index].kind = (uint32_t)kind;
    return (uint64_t)ids->slots[index].generation << 32 | index;
}

void ob1_id_put(struct ob1_ids *ids, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct ob1_id_slot *slot;

    if (id == 0 || index >= ids->n)
        return;
    slot = &ids->slots[index];
    if (slot->kind == OB1_ID_FREE || slot->generation != (uint32_t)(id >> 32))
        return;
    slot->kind = OB1_ID_FREE;
    if (++slot->generation == 0)
        slot->generation = 1; /* so that no id is 0 */
    slot->object = (void *)(uintptr_t)ids->free;
    ids->free = index;
}

void ob1_ids_destroy(struct ob1_ids *ids)
{
    free(ids->slots);
    *ids = (struct ob1_ids){0};
}

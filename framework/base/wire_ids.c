/* Names on the wire: see wire_ids.h. */
#include <stdlib.h>
#include <strata/sdk/wire_ids.h>

static int wire_ids_grow(struct st_wire_ids *ids)
{
    uint32_t n = ids->n ? ids->n * 2 : 16;
    struct st_wire_id *slots = realloc(ids->slots, n * sizeof(*slots));

    if (!slots)
        return STRATA_ERR_NOMEM;
    for (uint32_t i = ids->n; i < n; i++)
        slots[i] = (struct st_wire_id){.object = (void *)(uintptr_t)(i + 1), .generation = 1};
    ids->slots = slots;
    ids->free = ids->n;
    ids->n = n;
    return STRATA_OK;
}

uint64_t st_wire_id_get(struct st_wire_ids *ids, uint32_t kind, void *object)
{
    uint32_t index;

    if (ids->free == ids->n && wire_ids_grow(ids) != STRATA_OK)
        return 0;
    index = ids->free;
    ids->free = (uint32_t)(uintptr_t)ids->slots[index].object;
    ids->slots[index].object = object;
    ids->slots[index].kind = kind;
    return (uint64_t)ids->slots[index].generation << 32 | index;
}

void st_wire_id_put(struct st_wire_ids *ids, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct st_wire_id *slot;

    if (id == 0 || index >= ids->n)
        return;
    slot = &ids->slots[index];
    if (slot->kind == ST_WIRE_ID_FREE || slot->generation != (uint32_t)(id >> 32))
        return;
    slot->kind = ST_WIRE_ID_FREE;
    if (++slot->generation == 0)
        slot->generation = 1; /* so that no id is 0 */
    slot->object = (void *)(uintptr_t)ids->free;
    ids->free = index;
}

void st_wire_ids_destroy(struct st_wire_ids *ids)
{
    free(ids->slots);
    *ids = (struct st_wire_ids){0};
}

/* Names for objects that travel over the wire: an index and a generation. What a peer sends back is looked up and
 * compared, so that a stale or forged id finds nothing. */
#ifndef OB1_IDS_H
#define OB1_IDS_H

#include <strata/sdk/component.h>

enum ob1_id_kind { OB1_ID_FREE = 0, OB1_ID_SEND, OB1_ID_RECV, OB1_ID_PUT };

struct ob1_id_slot {
    void *object; /* next free index when free */
    uint32_t generation;
    uint32_t kind;
};

struct ob1_ids {
    struct ob1_id_slot *slots;
    uint32_t n, free; /* free: index of the first free slot, n when there is none */
};

/* A new id, or 0 when out of memory: 0 is never an id. */
uint64_t ob1_id_get(struct ob1_ids *ids, enum ob1_id_kind kind, void *object);
void ob1_id_put(struct ob1_ids *ids, uint64_t id);
void ob1_ids_destroy(struct ob1_ids *ids);

static inline void *ob1_id_find(const struct ob1_ids *ids, enum ob1_id_kind kind, uint64_t id)
{
    uint32_t index = (uint32_t)id;

    if (index >= ids->n || ids->slots[index].generation != (uint32_t)(id >> 32) || ids->slots[index].kind != kind)
        return NULL;
    return ids->slots[index].object;
}

#endif

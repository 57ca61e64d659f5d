/* Names for objects on the wire: an index and a generation, never an address. A name sent back by a peer is looked up
 * and compared, so that a stale or forged name finds nothing. Not thread safe. */
#ifndef STRATA_SDK_WIRE_IDS_H
#define STRATA_SDK_WIRE_IDS_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of a slot without an object; the user's kinds begin at 1. */
#define ST_WIRE_ID_FREE 0u

/* A slot: the lower half of a name is its index, the upper half its generation. */
struct st_wire_id {
    void *object;        /* next free index when free */
    uint32_t generation; /* raised each time a name goes stale; never 0 */
    uint32_t kind;       /* the user's, or ST_WIRE_ID_FREE */
};

/* The names of one user; zeros are an empty table. */
struct st_wire_ids {
    struct st_wire_id *slots; /* n of them; a user may walk them */
    uint32_t n;               /* slots */
    uint32_t free;            /* index of the first free slot, n when there is none */
};

/* Returns a new name, or 0 when out of memory: 0 is never a name. */
ST_API uint64_t st_wire_id_get(struct st_wire_ids *ids, uint32_t kind, void *object);
/* Makes a name stale. No effect for a stale name, or 0. */
ST_API void st_wire_id_put(struct st_wire_ids *ids, uint64_t id);
ST_API void st_wire_ids_destroy(struct st_wire_ids *ids); /* the objects are the user's */

/* Returns the object of a name of that kind, or NULL. */
static inline void *st_wire_id_find(const struct st_wire_ids *ids, uint32_t kind, uint64_t id)
{
    uint32_t index = (uint32_t)id;

    if (index >= ids->n || ids->slots[index].generation != (uint32_t)(id >> 32) || ids->slots[index].kind != kind)
        return NULL;
    return ids->slots[index].object;
}

#ifdef __cplusplus
}
#endif
#endif

/* Free list of equal objects that grows in slabs. Not thread safe: the owner serialises. get and put are a few
 * instructions while the list is not empty; growth allocates one slab and never moves objects. */
#ifndef STRATA_SDK_SLAB_H
#define STRATA_SDK_SLAB_H

#include <strata/sdk/component.h>
#include <strata/sdk/hint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The list; initialise with st_slab_init. */
struct st_slab {
    void *free;         /* singly linked through the first word of each free object */
    size_t object_size; /* rounded up to align */
    size_t align;       /* of each object */
    size_t per_slab;    /* objects added at a time */
    size_t max;         /* objects in all; 0: no limit */
    size_t made;        /* objects there are */
    size_t in_use;      /* of them handed out */
    void *slabs;        /* linked chunks, for destroy */
};

/* Allocates nothing yet. align: a power of two >= sizeof(void *). */
ST_API int st_slab_init(struct st_slab *slab, size_t object_size, size_t align, size_t per_slab, size_t max);
ST_API void st_slab_destroy(struct st_slab *slab); /* frees all objects, in use or not */
/* Grows the list, then gets; NULL at the limit or out of memory. */
ST_API void *st_slab_get_slow(struct st_slab *slab);
/* Memory that the slabs hold. */
ST_API size_t st_slab_bytes(const struct st_slab *slab);

/* Returns an uninitialised object, or NULL at the limit or out of memory. */
static inline void *st_slab_get(struct st_slab *slab)
{
    void *o = slab->free;
    if (ST_UNLIKELY(o == NULL))
        return st_slab_get_slow(slab);
    slab->free = *(void **)o;
    slab->in_use++;
    return o;
}
/* Returns an object to the list. */
static inline void st_slab_put(struct st_slab *slab, void *o)
{
    *(void **)o = slab->free;
    slab->free = o;
    slab->in_use--;
}

#ifdef __cplusplus
}
#endif
#endif

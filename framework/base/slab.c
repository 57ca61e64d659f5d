/* Free list of equal objects, grown slab by slab. */
#include <strata/sdk/slab.h>

#include <stdlib.h>

/* In front of each slab: the chain that destroy walks. */
struct chunk {
    struct chunk *next;
};

static size_t slab_round_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

int st_slab_init(struct st_slab *slab, size_t object_size, size_t align, size_t per_slab, size_t max)
{
    if (object_size == 0 || per_slab == 0 || align < sizeof(void *) || (align & (align - 1)) != 0)
        return STRATA_ERR_ARG;
    *slab = (struct st_slab){
        .object_size = slab_round_up(object_size, align), .align = align, .per_slab = per_slab, .max = max};
    return STRATA_OK;
}

void st_slab_destroy(struct st_slab *slab)
{
    struct chunk *c = slab->slabs;
    while (c) {
        struct chunk *next = c->next;
        free(c);
        c = next;
    }
    slab->slabs = slab->free = NULL;
    slab->made = slab->in_use = 0;
}

/* Adds a chunk to the free list, or leaves it empty: at the limit, or out of memory. */
static void slab_grow(struct st_slab *slab)
{
    size_t n = slab->per_slab;
    if (slab->max != 0) {
        if (slab->made >= slab->max)
            return;
        if (n > slab->max - slab->made)
            n = slab->max - slab->made;
    }
    size_t head = slab_round_up(sizeof(struct chunk), slab->align);
    size_t bytes;
    if (__builtin_mul_overflow(n, slab->object_size, &bytes) || __builtin_add_overflow(bytes, head, &bytes))
        return;
    struct chunk *c = NULL;
    if (posix_memalign((void **)&c, slab->align, bytes) != 0)
        return;
    c->next = slab->slabs;
    slab->slabs = c;
    /* From the last to the first, so that objects are handed out in ascending order of address. */
    for (size_t i = n; i-- > 0;) {
        void *o = (char *)c + head + i * slab->object_size;
        *(void **)o = slab->free;
        slab->free = o;
    }
    slab->made += n;
}

void *st_slab_get_slow(struct st_slab *slab)
{
    if (slab->free == NULL)
        slab_grow(slab);
    void *o = slab->free;
    if (!o)
        return NULL;
    slab->free = *(void **)o;
    slab->in_use++;
    return o;
}

size_t st_slab_bytes(const struct st_slab *slab)
{
    size_t chunks = 0;
    for (const struct chunk *c = slab->slabs; c; c = c->next)
        chunks++;
    return slab->made * slab->object_size + chunks * slab_round_up(sizeof(struct chunk), slab->align);
}

/* Contract of the mpool framework: source of the memory used by devices.
 *
 * One pool per context serves all its transports, and strata_mem_alloc. It returns whole pages that hold nothing else:
 * registered pages may be missing in a child after fork, or remain the parent's while the child gets copies.
 *
 * Threads. All ops are called with the context's lock held, as a BTL's are (btl.h), or while the context is made or
 * taken down. */
#ifndef STRATA_SDK_MPOOL_H
#define STRATA_SDK_MPOOL_H

#include <strata/sdk/shared_file.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_mpool;
/* Operations of a pool; none may be NULL. */
struct st_mpool_ops {
    /* Returns at least `len` > 0 zeroed bytes on a page boundary, private to the process; *got is their number: whole
     * pages. NULL: no memory. */
    void *(*alloc)(struct st_mpool *pool, size_t len, size_t *got);
    /* Frees memory of alloc; the caller has undone all its registrations. */
    void (*free)(struct st_mpool *pool, void *memory, size_t got);
    /* Allocates memory that peers may map, for rings that they write; a pool uses st_shared_alloc for it. Memory for
     * programs (strata_mem_alloc) stays private. */
    int (*alloc_shared)(struct st_mpool *pool, size_t len, struct st_shared_piece *out);
    /* Frees memory of alloc_shared; the caller has undone all its registrations. */
    void (*free_shared)(struct st_mpool *pool, const struct st_shared_piece *piece);
    /* Finds the place of memory of alloc_shared in its file (st_shared_find). False: other memory. */
    bool (*find_shared)(struct st_mpool *pool, const void *memory, size_t len, struct st_shared_piece *out);
    void (*close)(struct st_mpool *pool); /* all memory has been freed */
};

/* First member of a pool's own struct. */
struct st_mpool {
    const struct st_mpool_ops *ops; /* the component's */
    strata_t *context;              /* to which it belongs */
    size_t page;                    /* bytes of the smallest page, a power of two */
};

/* What an mpool component's `ops` points to. */
struct st_mpool_component_ops {
    /* Makes the pool; allocates nothing large. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_mpool **out);
};

/* The context's pool, selected at the first call, until after the last BTL is closed. NULL where no component of the
 * framework is installed or opens. From any thread. */
ST_API struct st_mpool *st_mpool(strata_t *s);

/* Frees the blocks kept registered for the embedder's next strata_host_mem_alloc. For transports whose registration, or
 * creation of another object, fails because locked memory is exhausted. With the context's lock held, not from inside
 * an op of the cache or a pool; calls dereg of transports. Returns the number of bytes; 0: no more blocks. */
ST_API size_t st_mem_release_spare(strata_t *s);

struct st_btl;
/* A module has its first endpoint: memory of strata_mem_alloc is registered with it from now on. Called by the bml for
 * each endpoint, with the context's lock held, not from inside an op of the cache or a pool; calls reg of transports.
 */
ST_API void st_mem_module_used(strata_t *s, const struct st_btl *btl);

#ifdef __cplusplus
}
#endif
#endif

/* Allocator for blocks of any size that are freed soon. The C library would return long blocks to the kernel, which
 * clears each page again for the next block. The cache keeps some of them, four sizes to a power of two, and frees
 * those of the least recently used size first. Not thread safe: the owner serialises. */
#ifndef STRATA_SDK_BLOCK_CACHE_H
#define STRATA_SDK_BLOCK_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ST_BLOCK_LISTS 44u   /* of blocks above 4 KiB, to 8 MiB */
#define ST_BLOCK_SHORT 4096u /* shorter blocks are not kept: bytes */

/* A cache; zero is one that keeps nothing. */
struct st_block_cache {
    size_t most;                   /* unused bytes that are kept at most */
    size_t align;                  /* a power of two from 8 on; 0: 64 */
    size_t skew;                   /* long blocks begin so many bytes behind a multiple of align */
    size_t bytes;                  /* unused bytes that are kept */
    size_t slack;                  /* by which blocks in use are longer than was asked for */
    uint32_t uses;                 /* of all lists; the clock of `used` */
    uint32_t used[ST_BLOCK_LISTS]; /* when blocks of a list were used last */
    void *unused[ST_BLOCK_LISTS];  /* blocks of one size, linked through their first word */
};

/* Returns an uninitialised block of at least `bytes`. NULL: out of memory. */
ST_API void *st_block_get(struct st_block_cache *cache, size_t bytes);
/* Frees a block that st_block_get returned for `bytes`. NULL is ignored. */
ST_API void st_block_put(struct st_block_cache *cache, void *block, size_t bytes);
/* Frees the unused blocks. Blocks in use may still be freed later. */
ST_API void st_block_cache_clear(struct st_block_cache *cache);

#ifdef __cplusplus
}
#endif
#endif

/* Blocks of memory that are used again: sizes, lists, and which of them are freed first. */
#include <stdlib.h>
#include <strata/sdk/block_cache.h>

#define SHORT_LOG 12u /* of ST_BLOCK_SHORT */
#define ALIGN     64u /* if the owner does not care */

struct unused {
    struct unused *next;
};

/* Bytes of the blocks in a list. */
static size_t block_room(uint32_t list)
{
    return (size_t)(list % 4 + 5) << (SHORT_LOG + list / 4 - 2);
}

/* The list for blocks of `bytes`; false: they are not kept. */
static bool block_list(size_t bytes, uint32_t *list)
{
    uint32_t log;

    if (bytes <= ST_BLOCK_SHORT || bytes > (size_t)1 << (SHORT_LOG + ST_BLOCK_LISTS / 4))
        return false;
    log = 31 - (uint32_t)__builtin_clz((uint32_t)bytes - 1);
    *list = (log - SHORT_LOG) * 4 + (((uint32_t)bytes - 1) >> (log - 2) & 3);
    return true;
}

static void block_free(const struct st_block_cache *cache, void *block)
{
    free((char *)block - cache->skew);
}

static struct unused *block_pop(struct st_block_cache *cache, uint32_t list)
{
    struct unused *u = cache->unused[list];

    if (u) {
        cache->unused[list] = u->next;
        cache->bytes -= block_room(list);
    }
    return u;
}

void *st_block_get(struct st_block_cache *cache, size_t bytes)
{
    uint32_t list;
    void *pages, *block;

    if (!block_list(bytes, &list))
        return malloc(bytes);
    cache->used[list] = ++cache->uses;
    if ((block = block_pop(cache, list)) == NULL) {
        if (posix_memalign(&pages, cache->align ? cache->align : ALIGN, block_room(list) + cache->skew) != 0)
            return NULL;
        block = (char *)pages + cache->skew;
    }
    cache->slack += block_room(list) - bytes;
    return block;
}

/* Frees a block of another list. False: there is none. */
static bool block_evict(struct st_block_cache *cache, uint32_t list)
{
    uint32_t oldest = list;

    for (uint32_t i = 0; i < ST_BLOCK_LISTS; i++)
        if (i != list && cache->unused[i] && (oldest == list || (int32_t)(cache->used[i] - cache->used[oldest]) < 0))
            oldest = i;
    if (oldest == list)
        return false;
    block_free(cache, block_pop(cache, oldest));
    return true;
}

void st_block_put(struct st_block_cache *cache, void *block, size_t bytes)
{
    uint32_t list;
    struct unused *u = block;

    if (!block)
        return;
    if (!block_list(bytes, &list)) {
        free(block);
        return;
    }
    cache->used[list] = ++cache->uses;
    cache->slack -= block_room(list) - bytes;
    while (cache->bytes + block_room(list) > cache->most)
        if (!block_evict(cache, list)) {
            block_free(cache, block);
            return;
        }
    u->next = cache->unused[list];
    cache->unused[list] = u;
    cache->bytes += block_room(list);
}

void st_block_cache_clear(struct st_block_cache *cache)
{
    for (uint32_t i = 0; i < ST_BLOCK_LISTS; i++)
        for (struct unused *u; (u = block_pop(cache, i)) != NULL;)
            block_free(cache, u);
}

/* The one hash of Strata: of numbers, for tables; of bytes, for names. Not for keys that a peer can choose, since it
 * could cause collisions. */
#ifndef STRATA_SDK_HASH_H
#define STRATA_SDK_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Of a number: the highest bits of the result are the slot. Multiplied by the golden ratio, neighbours and numbers at
 * regular distances fall into different slots. */
static inline uint64_t st_hash(uint64_t x)
{
    return x * 0x9e3779b97f4a7c15ull;
}

/* Of n bytes (FNV-1a, 64 bits): the same in every process. */
static inline uint64_t st_hash_bytes(const void *data, size_t n)
{
    const uint8_t *p = (const uint8_t *)data;
    uint64_t h = 0xcbf29ce484222325ull;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

#endif

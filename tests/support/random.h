/* Small deterministic random numbers for tests: splitmix64. */
#ifndef TEST_SUPPORT_RANDOM_H
#define TEST_SUPPORT_RANDOM_H

#include <stdint.h>

struct rnd {
    uint64_t state;
};

static inline uint64_t rnd_next(struct rnd *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
/* 0 .. n-1 */
static inline uint32_t rnd_below(struct rnd *r, uint32_t n)
{
    return (uint32_t)(((rnd_next(r) >> 32) * n) >> 32);
}

#endif

/* See pattern.h. */
#include "support/pattern.h"
#include "support/random.h"

#include <string.h>

/* Bytes that are made at a time: one memcpy or memcmp of many bytes costs a sanitizer little more than one of eight. */
enum { WORDS = 64, BLOCK = 8 * WORDS };

/* The block of the stream that holds byte `at`, as far as it is wanted: `*from` is the place of that byte in the block.
 * Returns how many of the `len` bytes from there are in it. */
static size_t make_block(uint64_t *block, size_t at, size_t len, uint64_t seed, size_t *from)
{
    const size_t in = at % BLOCK, n = BLOCK - in < len ? BLOCK - in : len;

    for (size_t i = in / 8; i < (in + n + 7) / 8; i++) {
        struct rnd r = {seed * 0x2545f4914f6cdd1dull + at / BLOCK * WORDS + i};
        block[i] = rnd_next(&r);
    }
    *from = in;
    return n;
}

void pattern_fill_at(void *buf, size_t offset, size_t len, uint64_t seed)
{
    uint64_t block[WORDS];
    size_t from;

    for (size_t i = 0, n; i < len; i += n) {
        n = make_block(block, offset + i, len - i, seed, &from);
        memcpy((char *)buf + i, (char *)block + from, n);
    }
}

void pattern_fill(void *buf, size_t len, uint64_t seed)
{
    pattern_fill_at(buf, 0, len, seed);
}

ptrdiff_t pattern_check_at(const void *buf, size_t offset, size_t len, uint64_t seed)
{
    const unsigned char *p = buf;
    uint64_t block[WORDS];
    size_t from;

    for (size_t i = 0, n; i < len; i += n) {
        n = make_block(block, offset + i, len - i, seed, &from);
        if (memcmp(p + i, (unsigned char *)block + from, n) == 0)
            continue;
        for (const unsigned char *right = (unsigned char *)block + from; p[i] == *right; right++)
            i++;
        return (ptrdiff_t)i;
    }
    return -1;
}

ptrdiff_t pattern_check(const void *buf, size_t len, uint64_t seed)
{
    return pattern_check_at(buf, 0, len, seed);
}

void pattern_guard_set(void *p)
{
    memset(p, 0xa5, PATTERN_GUARD);
}

int pattern_guard_ok(const void *p)
{
    const unsigned char *c = p;
    for (int i = 0; i < PATTERN_GUARD; i++)
        if (c[i] != 0xa5)
            return 0;
    return 1;
}

/* See pattern.h. */
#include "support/pattern.h"
#include "support/random.h"

#include <string.h>

static uint64_t word_at(size_t index, uint64_t seed)
{
    struct rnd r = {seed * 0x2545f4914f6cdd1dull + index};
    return rnd_next(&r);
}

void pattern_fill_at(void *buf, size_t offset, size_t len, uint64_t seed)
{
    unsigned char *p = buf;
    size_t i = 0;
    while (i < len) {
        size_t at = offset + i;
        uint64_t w = word_at(at / 8, seed);
        size_t in = at % 8, n = 8 - in < len - i ? 8 - in : len - i;
        memcpy(p + i, (unsigned char *)&w + in, n);
        i += n;
    }
}

void pattern_fill(void *buf, size_t len, uint64_t seed)
{
    pattern_fill_at(buf, 0, len, seed);
}

ptrdiff_t pattern_check_at(const void *buf, size_t offset, size_t len, uint64_t seed)
{
    const unsigned char *p = buf;
    size_t i = 0;
    while (i < len) {
        size_t at = offset + i;
        uint64_t w = word_at(at / 8, seed);
        size_t in = at % 8, n = 8 - in < len - i ? 8 - in : len - i;
        if (memcmp(p + i, (unsigned char *)&w + in, n)) {
            while (p[i] == ((unsigned char *)&w)[in++])
                i++;
            return (ptrdiff_t)i;
        }
        i += n;
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

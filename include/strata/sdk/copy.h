/* Copying: a few bytes without a call, what headers and short messages need, and payloads. */
#ifndef STRATA_SDK_COPY_H
#define STRATA_SDK_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/hint.h>
#include <string.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether dst lies up to 63 bytes beyond src modulo 4096. Processors with AMD's Zen 3 and 4 then take what `rep movsb`
 * loads for what it has just stored: a cycle for each byte, up to 30 times as long. Measured on a Zen 3 for 1 to 31
 * bytes. Memory that is aligned to pages and a payload behind a header in a buffer are soon that far apart. */
static inline int st_copy_collides(const void *dst, const void *src)
{
    return (((uintptr_t)dst - (uintptr_t)src - 1) & 4095u) < 63u;
}

#define ST_COPY_LONG 2048u /* the C library takes `rep movsb` for more, or more than a multiple of that */

/* memcpy by pieces for which no C library takes `rep movsb`. */
ST_API void st_copy_in_pieces(void *dst, const void *src, size_t n);

/* memcpy of what may be long. */
static inline void st_copy_long(void *dst, const void *src, size_t n)
{
    if (ST_UNLIKELY(n > ST_COPY_LONG && st_copy_collides(dst, src)))
        st_copy_in_pieces(dst, src, n);
    else
        memcpy(dst, src, n);
}

/* Most bytes that no C library copies past the caches (glibc: x86_non_temporal_threshold is 16448 or more). */
#define ST_COPY_CACHED 16384u

/* memcpy of what is read again at once, and so shall stay in the caches. */
static inline void st_copy_cached(void *dst, const void *src, size_t n)
{
    char *d = (char *)dst;
    const char *s = (const char *)src;

    for (; n > ST_COPY_CACHED; n -= ST_COPY_CACHED, d += ST_COPY_CACHED, s += ST_COPY_CACHED)
        st_copy_long(d, s, ST_COPY_CACHED);
    st_copy_long(d, s, n);
}

/* The shortest copy into shared memory that st_copy_shared makes by `rep movsb`; UINT32_MAX: none, since it is slow for
 * short copies here. */
ST_API uint32_t st_copy_shared_least(void);

/* memcpy into memory that another processor waits for and has in its cache. `rep movsb` writes whole lines without
 * reading them first, and a line that the reader fetches early costs less: measured 0.74 of memcpy's time at 2 KiB.
 * least: st_copy_shared_least(). */
static inline void st_copy_shared(void *dst, const void *src, size_t n, uint32_t least)
{
#if defined(__x86_64__)
    if (n >= least && !st_copy_collides(dst, src)) {
        __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
        return;
    }
#else
    (void)least;
#endif
    st_copy_long(dst, src, n);
}

/* memcpy of any length; up to 64 bytes it is inline: two overlapping halves of each size class. */
static inline __attribute__((always_inline)) void st_copy(void *dst, const void *src, size_t n)
{
    char *d = (char *)dst;
    const char *s = (const char *)src;
    struct st_copy_16 {
        uint64_t w[2];
    } a, b, c, e;

    if (ST_LIKELY(n <= 16)) {
        if (n >= 8) {
            memcpy(&a.w[0], s, 8);
            memcpy(&a.w[1], s + n - 8, 8);
            memcpy(d, &a.w[0], 8);
            memcpy(d + n - 8, &a.w[1], 8);
        } else if (n >= 4) {
            uint32_t x, y;
            memcpy(&x, s, 4);
            memcpy(&y, s + n - 4, 4);
            memcpy(d, &x, 4);
            memcpy(d + n - 4, &y, 4);
        } else if (n != 0) {
            char x = s[0], y = s[n / 2], z = s[n - 1];
            d[0] = x;
            d[n / 2] = y;
            d[n - 1] = z;
        }
    } else if (n <= 64) {
        memcpy(&a, s, 16);
        memcpy(&b, s + n - 16, 16);
        if (n > 32) {
            memcpy(&c, s + 16, 16);
            memcpy(&e, s + n - 32, 16);
            memcpy(d + 16, &c, 16);
            memcpy(d + n - 32, &e, 16);
        }
        memcpy(d, &a, 16);
        memcpy(d + n - 16, &b, 16);
    } else {
        st_copy_long(d, s, n);
    }
}

#ifdef __cplusplus
}
#endif
#endif

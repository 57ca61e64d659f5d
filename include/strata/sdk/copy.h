/* Copying a few bytes without a call: what headers and short messages need. */
#ifndef STRATA_SDK_COPY_H
#define STRATA_SDK_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* memcpy of any length; up to 64 bytes it is inline: two overlapping halves of each size class. */
static inline __attribute__((always_inline)) void st_copy(void *dst, const void *src, size_t n)
{
    char *d = (char *)dst;
    const char *s = (const char *)src;
    struct st_copy_16 {
        uint64_t w[2];
    } a, b, c, e;

    if (__builtin_expect(n <= 16, 1)) {
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
        memcpy(d, s, n);
    }
}

#ifdef __cplusplus
}
#endif
#endif

/* Copying by pieces, where one copy would be slow; which copies into shared memory are fast here. */
#include <strata/sdk/copy.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

void st_copy_in_pieces(void *dst, const void *src, size_t n)
{
    char *d = (char *)dst;
    const char *s = (const char *)src;
    size_t piece = ST_COPY_LONG / 2;

    __asm__("" : "+r"(piece)); /* hidden: for a length that it knows the compiler makes a `rep movsq` of its own */
    for (; n > piece; n -= piece, d += piece, s += piece)
        memcpy(d, s, piece);
    memcpy(d, s, n);
}

uint32_t st_copy_shared_least(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d;

    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 4))) /* fast short REP MOVSB */
        return 256;
#endif
    return UINT32_MAX;
}

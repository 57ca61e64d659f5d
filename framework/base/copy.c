/* Copying by pieces, where one copy would be slow. */
#include <strata/sdk/copy.h>

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

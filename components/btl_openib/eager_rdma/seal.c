/* Seals: the last byte of each cache line of a message says that the line has arrived. The bytes that were there travel
 * in front of the footer, those of the last line but one first. */
#include "eager_rdma/slot.h"

/* The next place for a displaced byte below p: never the last byte of a line. `end` is the end of a line. */
static inline char *seal_place(const char *end, char *p)
{
    p--;
    return ((uint32_t)(end - p) & (IB_LINE - 1)) == 1 ? p - 1 : p;
}

void ib_seal(char *end, uint32_t len, uint8_t value)
{
    char *to = end - IB_FOOTER;

    for (uint32_t n = ib_seal_lines(len), i = 1; i < n; i++) {
        char *last = end - i * IB_LINE - 1;
        to = seal_place(end, to);
        *to = *last;
        *last = (char)value;
    }
}

bool ib_seal_whole(const char *end, uint32_t len, uint8_t value)
{
    /* Volatile: the device writes them. The caller's fence orders these reads before those of the message. */
    for (uint32_t n = ib_seal_lines(len), i = 1; i < n; i++)
        if (*(const volatile uint8_t *)(end - i * IB_LINE - 1) != value)
            return false;
    return true;
}

void ib_seal_open(char *end, uint32_t len)
{
    char *from = end - IB_FOOTER;

    for (uint32_t n = ib_seal_lines(len), i = 1; i < n; i++) {
        from = seal_place(end, from);
        end[-(int32_t)(i * IB_LINE) - 1] = *from;
    }
}

void ib_seal_clear(char *end, uint32_t len)
{
    for (uint32_t n = ib_seal_lines(len), i = 1; i < n; i++)
        end[-(int32_t)(i * IB_LINE) - 1] = 0;
}

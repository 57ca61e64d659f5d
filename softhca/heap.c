/* Memory for queues inside the segment, and slots of its tables. Freed pieces are kept by size and used again for the
 * same size; what programs make is a few sizes many times. */
#include "hca.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    uint64_t offset;
    struct piece *next;
};
static struct size_list {
    size_t bytes;
    struct piece *free;
    struct size_list *next;
} * sizes;
static uint64_t top = HCA_AT_HEAP;
static const char *of_segment; /* whose heap this is: a child of fork begins anew */

static struct size_list *list_of(size_t bytes)
{
    struct size_list *l = sizes;

    while (l && l->bytes != bytes)
        l = l->next;
    if (!l && (l = calloc(1, sizeof *l)) != NULL) {
        l->bytes = bytes;
        l->next = sizes;
        sizes = l;
    }
    return l;
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + HCA_LINE - 1) / HCA_LINE * HCA_LINE;
}

uint64_t hca_heap_alloc(size_t bytes)
{
    struct size_list *l;
    struct piece *p;
    uint64_t at;

    if (of_segment != hca.segment) {
        of_segment = hca.segment;
        top = HCA_AT_HEAP;
        sizes = NULL;
    }
    bytes = whole_lines(bytes);
    l = list_of(bytes);
    if (l && (p = l->free) != NULL) {
        l->free = p->next;
        at = p->offset;
        free(p);
        memset(hca.segment + at, 0, bytes);
        return at;
    }
    if (bytes == 0 || bytes > HCA_SIZE - top)
        return 0;
    at = top;
    top += bytes;
    return at;
}

void hca_heap_free(uint64_t offset, size_t bytes)
{
    struct size_list *l = list_of(whole_lines(bytes));
    struct piece *p = l ? malloc(sizeof *p) : NULL;

    if (!p)
        return; /* lost until the process ends */
    *p = (struct piece){offset, l->free};
    l->free = p;
}

uint32_t hca_slot_find(void *const table[], uint32_t limit, uint32_t *hint)
{
    for (uint32_t i = 0; i < limit; i++) {
        uint32_t slot = (*hint + i) % limit;
        if (!table[slot]) {
            *hint = (slot + 1) % limit;
            return slot;
        }
    }
    return HCA_NONE;
}

uint32_t hca_pow2(uint32_t n)
{
    uint32_t p = 1;

    while (p < n && p < 1u << 31)
        p <<= 1;
    return p;
}

/* The table of guesses; see cache.h. */
#include <stdlib.h>
#include "cache.h"

enum { FIRST_BITS = 6 };

int cache_memo_init(struct cache_memo *memo)
{
    memo->bits = FIRST_BITS;
    memo->slot = calloc((size_t)1 << memo->bits, sizeof(struct cache_entry *));
    return memo->slot ? STRATA_OK : STRATA_ERR_NOMEM;
}

void cache_memo_grow(struct cache_memo *memo, uint64_t n)
{
    size_t old = (size_t)1 << memo->bits;
    if (2 * n <= old)
        return;
    struct cache_memo larger = {calloc(2 * old, sizeof(struct cache_entry *)), memo->bits + 1};
    if (!larger.slot)
        return;
    for (size_t i = 0; i < old; i++) {
        struct cache_entry *e = memo->slot[i];
        if (e && e->range.at) /* under its own beginning: where it will mostly be looked for */
            *cache_memo_at(&larger, e->range.base.client, e->range.base.from) = e;
    }
    free(memo->slot);
    *memo = larger;
}

/* The table of guesses; see tree.h. */
#include <stdlib.h>
#include "tree.h"

enum { FIRST_BITS = 6 };

int tree_memo_init(struct tree_memo *memo)
{
    memo->bits = FIRST_BITS;
    memo->slot = calloc((size_t)1 << memo->bits, sizeof(struct tree_entry *));
    return memo->slot ? STRATA_OK : STRATA_ERR_NOMEM;
}

void tree_memo_grow(struct tree_memo *memo, uint64_t n)
{
    size_t old = (size_t)1 << memo->bits;
    if (2 * n <= old)
        return;
    struct tree_memo larger = {calloc(2 * old, sizeof(struct tree_entry *)), memo->bits + 1};
    if (!larger.slot)
        return;
    for (size_t i = 0; i < old; i++) {
        struct tree_entry *e = memo->slot[i];
        if (e && e->range.at) /* under its own beginning: where it will mostly be looked for */
            *tree_memo_at(&larger, e->range.base.client, e->range.base.from) = e;
    }
    free(memo->slot);
    *memo = larger;
}

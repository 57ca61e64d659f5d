/* Changing all of the code, as often as others change it back. A library may put its hooks in front of ours and take
 * them away again many times, as libfabric does with each last domain: room for jumps is scarce, and pieces of code are
 * never freed. So a change that was made before of the same code is made again as it was, and code that is as we left
 * it once is left so. */
#include <string.h>

#include "intercept.h"

enum {
    MOST = 16,   /* functions that are remembered */
    CHANGES = 6, /* of each */
    CODE = 24    /* bytes of a function that must be the same: more than anybody's jump */
};

/* Process-wide, as the code is; under the lock of who changes it. */
static struct change {
    struct intercept_entry entry; /* as it was changed; at: NULL when there is none */
    uint8_t found[CODE];          /* what was changed */
} history[MOST][CHANGES];
static unsigned next[MOST];
static uint8_t finding[MOST][CODE];

bool intercept_ours(const struct intercept_entry *e)
{
    return e->word && atomic_load_explicit(e->word, memory_order_relaxed) == e->new_word;
}

bool intercept_all_ours(const struct intercept_entry *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (entries[i].at && !intercept_ours(&entries[i]))
            return false;
    return true;
}

/* As it was once: then that is what it is from now on. */
static bool intercept_restored(struct intercept_entry *e, size_t i)
{
    for (size_t k = 0; k < CHANGES; k++)
        if (history[i][k].entry.at && intercept_ours(&history[i][k].entry)) {
            *e = history[i][k].entry;
            return true;
        }
    return false;
}

static int intercept_recall(struct intercept_entry *e, size_t i, char *why, size_t why_size)
{
    if (intercept_restored(e, i))
        return STRATA_OK;
    for (size_t k = 0; k < CHANGES; k++)
        if (history[i][k].entry.at && memcmp(history[i][k].found, e->at, CODE) == 0) {
            *e = history[i][k].entry;
            return intercept_patch(e, 1, why, why_size);
        }
    return STRATA_OK; /* a new one */
}

static void intercept_remember(const struct intercept_entry *e, size_t i)
{
    struct change *c = &history[i][next[i]++ % CHANGES];
    c->entry = *e;
    memcpy(c->found, finding[i], CODE);
}

int intercept_change(struct intercept_entry *entries, size_t n, char *why, size_t why_size)
{
    bool changing[MOST] = {false};
    int rc;

    for (size_t i = 0; i < n && i < MOST; i++) {
        struct intercept_entry *e = &entries[i];
        if (!e->at || intercept_ours(e))
            continue;
        if ((rc = intercept_recall(e, i, why, why_size)) != STRATA_OK)
            return rc;
        changing[i] = !intercept_ours(e);
        memcpy(finding[i], e->at, CODE);
    }
    if (intercept_all_ours(entries, n))
        return STRATA_OK;
    if ((rc = intercept_plan(entries, n, why, why_size)) != STRATA_OK ||
        (rc = intercept_patch(entries, n, why, why_size)) != STRATA_OK)
        return rc;
    for (size_t i = 0; i < n && i < MOST; i++)
        if (changing[i] && entries[i].at)
            intercept_remember(&entries[i], i);
    return STRATA_OK;
}

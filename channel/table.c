/* Tables by ring name. */
#include "channel/table.h"

#include <string.h>

#include "channel/channel.h"

int channel_table_set(struct channels *ch, struct channel_table *t, uint32_t name, void *entry)
{
    uint32_t n = t->n ? t->n : CHANNEL_TABLE_LEAST;

    if (name >= t->n) {
        if (!entry)
            return STRATA_OK;
        while (n <= name)
            n *= 2;
        void **at = channel_alloc(ch, n * sizeof(*at));
        if (!at)
            return STRATA_ERR_NOMEM;
        if (t->n)
            memcpy(at, t->at, t->n * sizeof(*at));
        channel_table_clear(ch, t);
        *t = (struct channel_table){at, n};
    }
    t->at[name] = entry;
    return STRATA_OK;
}

void channel_table_clear(struct channels *ch, struct channel_table *t)
{
    channel_free(ch, t->at, t->n * sizeof(*t->at));
    *t = (struct channel_table){0};
}

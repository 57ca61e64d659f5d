/* Private to channels: a table by ring name, as long as the highest name in use asks for. */
#ifndef CHANNEL_TABLE_H
#define CHANNEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define CHANNEL_TABLE_LEAST 8u /* entries of one that is not empty */

struct channels;

struct channel_table {
    void **at; /* n entries, NULL where there is nothing */
    uint32_t n;
};

static inline void *channel_table_get(const struct channel_table *t, uint32_t name)
{
    return name < t->n ? t->at[name] : NULL;
}

/* Puts an entry there, which may be NULL. STRATA_ERR_NOMEM; clearing one does not fail. */
int channel_table_set(struct channels *ch, struct channel_table *t, uint32_t name, void *entry);
/* Frees the table, not what is in it. */
void channel_table_clear(struct channels *ch, struct channel_table *t);

#endif

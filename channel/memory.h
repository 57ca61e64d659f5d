/* Private to channels: memory for a long message, on whole pages, which may be registered. */
#ifndef CHANNEL_MEMORY_H
#define CHANNEL_MEMORY_H

#include <strata/sdk/btl_rdma.h>

struct channels;

struct channel_memory {
    char *at;           /* NULL: none */
    size_t got;         /* bytes; 0: the memory is the user's */
    bool pooled;        /* of the context's pool */
    struct st_btl *btl; /* with which it is registered, or NULL */
    struct st_btl_reg reg;
};

/* All with the lock held. Gets at least `length` bytes; counted in the channels' memory. STRATA_ERR_NOMEM. */
int channel_memory_get(struct channels *ch, struct channel_memory *m, size_t length);
/* Registers `length` bytes with a module that needs it, once. As st_btl_rdma.reg. */
int channel_memory_register(struct channel_memory *m, struct st_btl *btl, size_t length, enum st_btl_use use);
/* Undoes both; nothing for one of zeros. */
void channel_memory_put(struct channels *ch, struct channel_memory *m);

#endif

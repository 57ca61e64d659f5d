/* Buffers of the module's own: slabs of registered memory, cut into pieces of one size. */
#ifndef IB_BUFFER_H
#define IB_BUFFER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/hint.h>
#include <strata/strata.h>

struct ib_device;
struct ib_peer;

struct ib_buffer {
    struct ibv_recv_wr wr; /* made once: to post it again only wr.next changes; first, so that a list of these is one of
                              buffers */
    struct ibv_sge sge;
    struct ib_buffer *next; /* in a free list */
    char *data;
    uint32_t lkey;
    uint8_t priority;
    struct ib_peer *peer; /* whose receive queue it is posted to; NULL: the shared one */
};
struct ib_slab; /* what was allocated and registered together */
struct ib_pool {
    const struct ib_device *dev;
    struct ib_buffer *free;
    struct ib_slab *slabs;
    uint32_t size;     /* bytes of a buffer */
    uint32_t lead;     /* bytes left free before each, so that what follows the usual heads begins with a line */
    uint32_t per_slab; /* buffers that are made at a time */
    uint32_t n, n_free;
    uint8_t priority;
};
void ib_pool_init(struct ib_pool *p, const struct ib_device *dev, uint32_t size, uint32_t per_slab, uint8_t priority);
void ib_pool_align(struct ib_pool *p, uint32_t head); /* before it grows: the byte at head of each begins a line */
int ib_pool_grow(struct ib_pool *p);                  /* STRATA_ERR_NOMEM when memory or registrations run out */
/* All that are posted to receive queues of peer's, which have gone without using any. */
void ib_pool_take_back(struct ib_pool *p, const struct ib_peer *peer);
void ib_pool_all_back(struct ib_pool *p); /* all that were ever got */
void ib_pool_destroy(struct ib_pool *p);
size_t ib_pool_bytes(const struct ib_pool *p);
static inline struct ib_buffer *ib_buffer_get(struct ib_pool *p)
{
    struct ib_buffer *b = p->free;

    if (ST_UNLIKELY(!b) && (ib_pool_grow(p) != STRATA_OK || !(b = p->free)))
        return NULL;
    p->free = b->next;
    p->n_free--;
    return b;
}
static inline void ib_buffer_put(struct ib_pool *p, struct ib_buffer *b)
{
    b->next = p->free;
    p->free = b;
    p->n_free++;
}

#endif

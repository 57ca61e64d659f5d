/* Messages that clients keep in their slots until they release them. */
#include "eager_rdma/kept.h"
#include "module.h"

#define HELD_SHARE 4u /* a ring holds at most one of so many slots between two deliveries */

static uint32_t kept_most(const struct ib_ring_in *r)
{
    return r->order.n / HELD_SHARE;
}

bool ib_keep(struct st_btl *btl, const void *data, uint32_t len, struct st_btl_kept *kept)
{
    struct ib_module *m = ib_module(btl);
    struct ib_taking *t = m->eager.taking;

    if (!t || t->kept || t->k > kept_most(t->ring) || len > t->data_len ||
        (uintptr_t)data - (uintptr_t)t->data > t->data_len - len)
        return false;
    kept->owner = t->ring;
    kept->at = t->slot;
    kept->n = t->len;
    st_list_append(&t->ring->kept, &kept->node);
    t->kept = kept;
    m->count.ring_kept++;
    return true;
}

/* Nothing is read from the slots: the peer may have written there. */
static void kept_free(struct ib_ring_in *r, uint32_t slot, uint32_t len)
{
    uint32_t left = r->order.n - slot, size = (uint32_t)r->size;
    uint32_t k = ib_slots_of(ib_slot_bytes(len, r->detect == IB_DETECT_SEAL), size, left);

    ib_ring_return(r, slot, (char *)(uintptr_t)r->bottom + 1 + (size_t)size * left, len, k);
}

void ib_release(struct st_btl *btl, struct st_btl_kept *kept)
{
    struct ib_taking *t = ib_module(btl)->eager.taking;

    st_list_remove(&kept->node);
    if (t && t->kept == kept)
        t->kept = NULL; /* freed after its delivery */
    else
        kept_free(kept->owner, kept->at, kept->n);
}

/* The oldest one, which is in the list no more. NULL: none is kept. */
static struct st_btl_kept *kept_leave_first(struct ib_module *m, struct ib_ring_in *r)
{
    struct st_node *n = st_list_pop(&r->kept);
    struct st_btl_kept *kept = n ? ST_CONTAINER(n, struct st_btl_kept, node) : NULL;

    if (kept)
        m->count.ring_copied++;
    return kept;
}

void ib_kept_trim(struct ib_module *m, struct ib_ring_in *r)
{
    struct st_btl_kept *kept;

    while (r->order.held > kept_most(r) && (kept = kept_leave_first(m, r)) != NULL) {
        uint32_t slot = kept->at, len = kept->n; /* the client may use its memory for the copy */
        kept->leave(kept);
        kept_free(r, slot, len);
    }
}

void ib_kept_end(struct ib_module *m, struct ib_ring_in *r)
{
    struct st_btl_kept *kept;

    while ((kept = kept_leave_first(m, r)) != NULL)
        kept->leave(kept);
}

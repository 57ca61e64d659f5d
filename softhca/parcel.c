/* Messages that are too short to be worth a call of the kernel: the sender copies them into the target's segment, and
 * the owner from there to where the receive said, when it polls the completion. Both touch only memory that is watched
 * (memory.c) or their own, so that a region whose pages have gone is an error here as well. Where there is no parcel,
 * or memory is not watched, the kernel copies. */
#include "hca.h"

#include <string.h>

/* Those that were claimed last are likely still to be read. */
#define TRIES 4

/* One of `n` parcels from `first` on. */
static struct hca_parcel *claim(struct hca_peer *p, _Atomic(uint32_t) *next, uint32_t first, uint32_t n,
                                uint32_t *which)
{
    uint32_t at = atomic_load_explicit(next, memory_order_relaxed);

    for (uint32_t i = 0; i < TRIES; i++, at++) {
        struct hca_parcel *parcel = hca_parcel_at(p->segment, first + at % n);
        uint32_t nobody = 0;
        /* Acquire: pairs with hca_parcel_free(), before which the owner had read what was in it. */
        if (atomic_load_explicit(&parcel->holder, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&parcel->holder, &nobody, hca.index, memory_order_acquire,
                                                    memory_order_relaxed)) {
            atomic_store_explicit(next, at + 1, memory_order_relaxed);
            *which = first + at % n;
            return parcel;
        }
    }
    return NULL;
}

static struct hca_parcel *claim_for(struct hca_peer *p, uint64_t length, uint32_t *which)
{
    return length <= hca_parcel_room(0) ? claim(p, &p->next_small, 0, HCA_SMALL_PARCELS, which)
                                        : claim(p, &p->next_large, HCA_SMALL_PARCELS, HCA_LARGE_PARCELS, which);
}

/* Of ours. */
static bool watched(uint32_t key)
{
    return key >> 8 < HCA_MRS && hca_mr_at(hca.segment, key >> 8)->watched;
}

bool hca_source_readable(const struct hca_source *s)
{
    for (uint32_t i = 0; i < s->n && !s->is_inline; i++)
        if (s->sge[i].length > 0 && !watched(s->sge[i].lkey))
            return false;
    return true;
}

uint32_t hca_parcel_send(struct hca_peer *p, const struct hca_source *from, uint64_t length)
{
    struct hca_parcel *parcel;
    uint32_t which;
    char *to;

    if (length == 0 || length > hca.limits.short_most || !hca_source_readable(from) || hca_peer_ended(p) ||
        !(parcel = claim_for(p, length, &which)))
        return 0;
    to = parcel->bytes;
    for (uint32_t i = 0; i < from->n && length > 0; i++) {
        uint64_t part = from->sge[i].length < length ? from->sge[i].length : length;
        memcpy(to, (const void *)(uintptr_t)from->sge[i].addr, part);
        to += part;
        length -= part;
    }
    return which + 1;
}

bool hca_parcel_open(uint32_t number, uint32_t pd, const struct hca_sge *into, uint32_t length)
{
    struct hca_sge to = *into, from = {.length = length};
    const struct hca_parcel *parcel;

    if (length == 0)
        return true;
    if (number > HCA_PARCELS || length > hca_parcel_room(number - 1) || length > to.length ||
        !hca_mr_check(hca.segment, to.lkey, pd, &to.addr, length, IBV_ACCESS_LOCAL_WRITE))
        return false;
    parcel = hca_parcel_at(hca.segment, number - 1);
    if (watched(to.lkey)) {
        memcpy((void *)(uintptr_t)to.addr, parcel->bytes, length);
        return true;
    }
    from.addr = (uintptr_t)parcel->bytes;
    return hca_transfer(hca_peer_get(hca.index), HCA_WRITE, &from, 1, &to, 1, length) == HCA_COPIED;
}

void hca_parcel_free(char *segment, uint32_t number)
{
    if (number > 0 && number <= HCA_PARCELS)
        /* Release: pairs with claim(). */
        atomic_store_explicit(&hca_parcel_at(segment, number - 1)->holder, 0, memory_order_release);
}

/* Short RDMA writes without a system call: where the target's memory region lies in a memfd that we have mapped, a
 * write is stores into that. They cannot fail: pages of the file stay when the target unmaps them, as pages that an
 * adapter has pinned do. */
#include "hca.h"

#include <string.h>

#define STORE_MOST (32u << 10) /* bytes; copies that are longer cost more than the system call */

/* The first `length` bytes of a list, the last of them last: programs poll it. */
static void copy(char *to, const struct hca_source *from, uint64_t length)
{
    for (uint32_t i = 0; i < from->n && length > 0; i++) {
        const uint64_t part = from->sge[i].length < length ? from->sge[i].length : length;
        const char *at = (const char *)(uintptr_t)from->sge[i].addr;
        length -= part;
        const uint64_t before = length > 0 || part == 0 ? part : part - 1;
        memcpy(to, at, before);
        to += before;
        if (before < part)
            /* Release: pairs with the acquire load by which a program polls it. */
            atomic_store_explicit((_Atomic(char) *)to, at[before], memory_order_release);
    }
}

/* Where a file that a region of p's lies in is mapped; *at: offset of an address of it. 0: in none. */
static uint32_t place(struct hca_peer *p, const struct hca_sge *to, uint64_t *at, uint64_t *serial)
{
    const struct hca_mr *s = hca_mr_at(p->segment, to->lkey >> 8);
    const uint32_t number = HCA_ONCE(s->file);

    if (number == 0 || number > HCA_FILES)
        return 0;
    *at = to->addr - s->base + s->file_offset;
    *serial = atomic_load_explicit(&hca_file_at(p->segment, number - 1)->serial, memory_order_acquire);
    /* The region may have gone, and its file with it, while we looked; after this its owner waits for us. */
    return atomic_load(&s->key) == to->lkey && *serial != 0 ? number : 0;
}

bool hca_store(struct hca_peer *p, const struct hca_source *from, const struct hca_sge *to)
{
    uint64_t at, serial, bytes;
    bool fits;

    if (to->length == 0 || to->length > STORE_MOST || to->length > hca.limits.short_most)
        return false;
    const uint32_t number = place(p, to, &at, &serial);
    if (number == 0 || !hca_source_readable(from))
        return false;
    if (hca_peer_ended(p)) {
        pthread_mutex_lock(&hca.lock);
        hca_mapped_trim(p);
        pthread_mutex_unlock(&hca.lock);
        return false;
    }
    char *file = hca_mapped_hold(p, number, serial, &bytes);
    if (!file)
        return false;
    fits = at <= bytes && to->length <= bytes - at;
    if (fits)
        copy(file + at, from, to->length);
    hca_mapped_let_go(p, number);
    return fits;
}

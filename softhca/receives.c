/* The receives of a queue as its owner keeps them, in memory of its own: a peer sees an id, which leads back here. So
 * what a program gets for a completion is what it posted, whatever stands in memory that peers can write.
 *
 * An id is serial number << 32 | place. A place's serial number is odd while a receive is in it, until its completion
 * is polled: as with an adapter, it takes up room in its queue for as long. */
#include "hca.h"

#include <stdlib.h>

bool hca_receives_make(struct hca_receives *r, uint32_t n)
{
    *r = (struct hca_receives){.of = calloc(n ? n : 1, sizeof r->of[0]), .n = n, .free = n ? 0 : HCA_NONE};
    atomic_store(&r->returned, HCA_NONE);
    for (uint32_t i = 0; r->of && i < n; i++)
        r->of[i].room_or_next = i + 1 < n ? i + 1 : HCA_NONE;
    return r->of != NULL;
}

void hca_receives_free(struct hca_receives *r)
{
    free(r->of);
    r->of = NULL;
}

bool hca_receive_add(struct hca_receives *r, const struct hca_posted *what, uint64_t *id)
{
    uint32_t place = r->free, serial;

    if (place == HCA_NONE) /* acquire: pairs with give_back() */
        place = atomic_exchange_explicit(&r->returned, HCA_NONE, memory_order_acquire);
    if (place == HCA_NONE)
        return false;
    struct hca_receive *e = &r->of[place];
    r->free = e->room_or_next;
    e->wr_id = what->wr_id;
    e->room_or_next = what->room < UINT32_MAX ? (uint32_t)what->room : UINT32_MAX;
    e->only = what->only;
    serial = atomic_load_explicit(&e->serial, memory_order_relaxed) + 1;
    /* Release: pairs with hca_receive_end(). */
    atomic_store_explicit(&e->serial, serial, memory_order_release);
    *id = (uint64_t)serial << 32 | place;
    return true;
}

/* By several at once: each queue pair of a shared queue may have a completion queue of its own. */
static void give_back(struct hca_receives *r, uint32_t place)
{
    uint32_t next = atomic_load_explicit(&r->returned, memory_order_relaxed);

    do
        r->of[place].room_or_next = next;
    while (
        !atomic_compare_exchange_weak_explicit(&r->returned, &next, place, memory_order_release, memory_order_relaxed));
}

bool hca_receive_end(struct hca_receives *r, uint64_t id, struct hca_posted *what)
{
    uint32_t place = (uint32_t)id, serial = (uint32_t)(id >> 32);
    struct hca_receive *e;

    if (place >= r->n || !(serial & 1))
        return false;
    e = &r->of[place];
    /* Once: who comes second finds another number. */
    if (!atomic_compare_exchange_strong_explicit(&e->serial, &serial, serial + 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    *what = (struct hca_posted){e->wr_id, e->room_or_next, e->only};
    give_back(r, place);
    return true;
}

void hca_receives_forget(struct hca_receives *r)
{
    struct hca_posted what;

    for (uint32_t i = 0; i < r->n; i++)
        (void)hca_receive_end(r, (uint64_t)atomic_load(&r->of[i].serial) << 32 | i, &what);
}

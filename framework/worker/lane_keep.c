/* Lanes: memory of messages that are kept. Long ones come and go in the order of their numbers, by the megabyte: given
 * back to the C library they would go back to the kernel, and each page would be cleared anew for the next message. So
 * a few stay with the worker, four sizes to a power of two; of the size that was least lately used they go first.
 *
 * What a long block holds begins 32 bytes behind a multiple of 64: where it lies in a frame of btl_tcp, behind that
 * one's header and the lane's, so that the kernel's copy does not collide (st_copy_collides). */
#include <stddef.h>
#include <stdlib.h>

#include "framework/worker/lane.h"

#define LONG_LOG    12u         /* shorter ones are the C library's */
#define SPARE_BYTES (4u << 20u) /* that stay at most: as much as a lane keeps */
#define PAGE        4096u
#define SKEW        (128u + 32u - (uint32_t)offsetof(struct lane_kept, bytes))

struct lane_unused {
    struct lane_unused *next;
};

/* Bytes of the blocks in a list. */
static size_t lane_keep_room(uint32_t list)
{
    return (size_t)(list % 4 + 5) << (LONG_LOG + list / 4 - 2);
}

/* The list for blocks of `bytes`, and how long these are; false: none. */
static bool lane_keep_class(size_t bytes, uint32_t *list, size_t *room)
{
    uint32_t log, step;

    if (bytes <= 1u << LONG_LOG || bytes > (size_t)1 << (LONG_LOG + LANE_SPARE_LISTS / 4))
        return false;
    log = 31 - (uint32_t)__builtin_clz((uint32_t)bytes - 1);
    step = log - 2;
    *list = (log - LONG_LOG) * 4 + (((uint32_t)bytes - 1) >> step & 3);
    *room = lane_keep_room(*list);
    return true;
}

static void *lane_keep_long(size_t room)
{
    void *pages;

    return posix_memalign(&pages, PAGE, room + SKEW) == 0 ? (char *)pages + SKEW : NULL;
}

static void lane_keep_free(void *block, bool is_long)
{
    free(is_long ? (char *)block - SKEW : block);
}

struct lane_kept *lane_keep_get(struct worker *w, size_t bytes)
{
    uint32_t list;
    size_t room = bytes;
    struct lane_unused *u;

    if (!lane_keep_class(bytes, &list, &room))
        return malloc(room);
    w->lane_spare_used[list] = ++w->lane_spare_uses;
    if ((u = w->lane_spare[list]) == NULL)
        return lane_keep_long(room);
    w->lane_spare[list] = u->next;
    w->lane_spare_bytes -= room;
    return (struct lane_kept *)u;
}

/* Gives a block of another list back. False: there is none. */
static bool lane_keep_evict(struct worker *w, uint32_t list)
{
    uint32_t oldest = list;
    struct lane_unused *u;

    for (uint32_t i = 0; i < LANE_SPARE_LISTS; i++)
        if (i != list && w->lane_spare[i] &&
            (oldest == list || (int32_t)(w->lane_spare_used[i] - w->lane_spare_used[oldest]) < 0))
            oldest = i;
    if (oldest == list)
        return false;
    u = w->lane_spare[oldest];
    w->lane_spare[oldest] = u->next;
    w->lane_spare_bytes -= lane_keep_room(oldest);
    lane_keep_free(u, true);
    return true;
}

void lane_keep_put(struct worker *w, struct lane_kept *k)
{
    uint32_t list;
    size_t room;
    struct lane_unused *u = (struct lane_unused *)k;

    if (!lane_keep_class(sizeof(*k) + k->size, &list, &room)) {
        lane_keep_free(k, false);
        return;
    }
    w->lane_spare_used[list] = ++w->lane_spare_uses;
    while (w->lane_spare_bytes + room > SPARE_BYTES)
        if (!lane_keep_evict(w, list)) {
            lane_keep_free(k, true);
            return;
        }
    u->next = w->lane_spare[list];
    w->lane_spare[list] = u;
    w->lane_spare_bytes += room;
}

void lane_keep_destroy(struct worker *w)
{
    for (uint32_t i = 0; i < LANE_SPARE_LISTS; i++)
        while (w->lane_spare[i]) {
            struct lane_unused *u = w->lane_spare[i];
            w->lane_spare[i] = u->next;
            lane_keep_free(u, true);
        }
    w->lane_spare_bytes = 0;
}

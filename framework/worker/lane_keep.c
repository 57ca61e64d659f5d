/* Lanes: memory of messages that are kept. Long ones come and go in the order of their numbers, by the megabyte: given
 * back to the C library they would go back to the kernel, and each page would be cleared anew for the next message. So
 * a few stay with the worker, four sizes to a power of two. */
#include <stdlib.h>

#include "framework/worker/lane.h"

#define LONG_LOG    12u         /* shorter ones are the C library's */
#define SPARE_BYTES (1u << 20u) /* that stay at most */

struct lane_unused {
    struct lane_unused *next;
};

/* The list for blocks of `bytes`, and how long these are; false: none. */
static bool lane_keep_class(size_t bytes, uint32_t *list, size_t *room)
{
    uint32_t log, step;

    if (bytes <= 1u << LONG_LOG || bytes > (size_t)1 << (LONG_LOG + LANE_SPARE_LISTS / 4))
        return false;
    log = 31 - (uint32_t)__builtin_clz((uint32_t)bytes - 1);
    step = log - 2;
    *list = (log - LONG_LOG) * 4 + (((uint32_t)bytes - 1) >> step & 3);
    *room = (((bytes - 1) >> step) + 1) << step;
    return true;
}

struct lane_kept *lane_keep_get(struct worker *w, size_t bytes)
{
    uint32_t list;
    size_t room = bytes;
    struct lane_unused *u;

    if (lane_keep_class(bytes, &list, &room) && (u = w->lane_spare[list]) != NULL) {
        w->lane_spare[list] = u->next;
        w->lane_spare_bytes -= room;
        return (struct lane_kept *)u;
    }
    return malloc(room);
}

void lane_keep_put(struct worker *w, struct lane_kept *k)
{
    uint32_t list;
    size_t room;
    struct lane_unused *u = (struct lane_unused *)k;

    if (!lane_keep_class(sizeof(*k) + k->size, &list, &room) || w->lane_spare_bytes + room > SPARE_BYTES) {
        free(k);
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
            free(u);
        }
    w->lane_spare_bytes = 0;
}

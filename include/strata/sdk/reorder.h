/* Early arrivals over an unordered transport: pointers by sequence numbers of 16 bits, which wrap. An object may be up
 * to ST_REORDER_WINDOW - 1 ahead of the number that is expected; everything else is stale. A ring indexed by number,
 * that grows to the distance seen: inserting and taking are one step in any order of arrival. Nothing is held while
 * nothing is ahead. Not thread safe. */
#ifndef STRATA_SDK_REORDER_H
#define STRATA_SDK_REORDER_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers that can be told from stale ones: half of them. */
#define ST_REORDER_WINDOW 32768u

/* The objects ahead of one sender's turn; NULL: none. */
struct st_reorder {
    uint32_t mask; /* slots - 1, a power of two less 1 */
    uint32_t n;    /* objects */
    void **slot;   /* by number & mask; NULL: not there. A user who gives all up walks them */
};

/* Keeps `object`, numbered seq while `next` is expected; *r is made, or moved, as need be. STRATA_ERR_PROTOCOL: it is
 * stale, or there already; STRATA_ERR_NOMEM. */
ST_API int st_reorder_insert(struct st_reorder **r, uint16_t next, uint16_t seq, void *object);
/* Takes out the object numbered `next`, or NULL; with the last one *r is freed and NULL. */
ST_API void *st_reorder_take(struct st_reorder **r, uint16_t next);

#ifdef __cplusplus
}
#endif
#endif

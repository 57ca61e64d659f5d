/* Ranges of memory that went away, from any number of threads to the one that holds the context's lock.
 *
 * A fixed number of slots. The order of ranges does not matter, so there is no queue in which a thread that was stopped
 * between taking a slot and filling it would hold up the ones behind it: it has not returned from its hook yet, so
 * its memory is still there, and the others' ranges are seen without it. A full mailbox loses ranges, and remembers
 * that it did: then everything must be taken out. */
#ifndef RCACHE_RCACHE_MAILBOX_H
#define RCACHE_RCACHE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAILBOX_WORDS = 16, MAILBOX_SLOTS = 64 * MAILBOX_WORDS };

struct mailbox {
    /* Bit w: word w of `full` has had a bit set since this was last cleared; MAILBOX_LOST: ranges were lost. All that
     * a look-up reads. */
    _Alignas(64) _Atomic(uint64_t) news;
    _Alignas(64) _Atomic(uint64_t) taken[MAILBOX_WORDS]; /* slots that are being filled or wait to be read */
    _Alignas(64) _Atomic(uint64_t) full[MAILBOX_WORDS];  /* slots that wait to be read */
    /* Nothing outside [lowest, highest) concerns the cache; only widened while anything is in it. */
    _Alignas(64) _Atomic(uintptr_t) lowest;
    _Atomic(uintptr_t) highest;
    struct {
        uintptr_t from, to;
    } slot[MAILBOX_SLOTS];
};

#define MAILBOX_LOST ((uint64_t)1 << 63)

void mailbox_init(struct mailbox *m);
/* Any thread, signal handlers too; takes a bounded number of steps. */
void mailbox_post(struct mailbox *m, uintptr_t from, uintptr_t to);
/* Owner: whether a take would find anything. */
static inline bool mailbox_any(const struct mailbox *m)
{
    return atomic_load_explicit(&m->news, memory_order_acquire) != 0;
}
/* Owner: hands each range to fn. True when ranges were lost. */
bool mailbox_take(struct mailbox *m, void (*fn)(void *arg, uintptr_t from, uintptr_t to), void *arg);
/* Owner: [from, to) is cached from now on. */
void mailbox_widen(struct mailbox *m, uintptr_t from, uintptr_t to);
/* Owner: nothing is cached now. */
void mailbox_close(struct mailbox *m);

#endif

/* Private to channels: a ring that both processes have mapped, where the transport can do that. The sender writes slots
 * into the receiver's memory by stores, the receiver finds them by loads; nothing else moves while neither sleeps, and
 * no lock is taken. docs/design/channel_mapped.md: slots, words, what is trusted. Positions count bytes. */
#ifndef CHANNEL_MAPPED_H
#define CHANNEL_MAPPED_H

#include <strata/sdk/atomic.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/landing_ring.h>
#include <strata/sdk/shared_map.h>

/* Slots are made of units; the header is one. */
#define MAPPED_UNIT 16u
/* A mapped ring is longer than its size by so much: behind the longest message there is still an empty header. */
#define MAPPED_SPARE 64u
/* Bytes that are kept back, at most; and kept messages between two looks at what the receiver has released. */
#define MAPPED_KEPT_MOST 2048u
#define MAPPED_LOOK      4u

/* A slot's header is one word, of which the lower half is the message's length; zero: nothing is there yet. */
#define MAPPED_THERE  ((uint64_t)1 << 32)
#define MAPPED_MARKED ((uint64_t)1 << 33) /* as ST_LANDING_MARKED */
#define MAPPED_END    ((uint64_t)1 << 34) /* no message: nothing follows */
#define MAPPED_GIVEN  ((uint64_t)1 << 35) /* the receiver's: released before an older one */

/* Behind the ring; each line has one writer. */
struct mapped_words {
    _Alignas(64) _Atomic(uint64_t) head;   /* the receiver's: it has released everything below */
    _Alignas(64) _Atomic(uint64_t) want;   /* the sender's: it asks to be told when head is there; 0: it does not */
    _Atomic(uint32_t) in_use;              /* the sender's: it writes this ring by stores */
    _Alignas(64) _Atomic(uint32_t) asleep; /* the receiver's: it asks to be told of the next message */
    _Atomic(uint64_t) wants; /* the receiver's: position behind the first unit of the next slot, whose message it waits
                              * for until it comes, with a buffer; an older one says nothing */
};
/* Memory of a ring beyond its size. */
#define MAPPED_MORE (MAPPED_SPARE + (uint32_t)sizeof(struct mapped_words))

static inline _Atomic(uint64_t) *mapped_header(char *ring, uint32_t at)
{
    return (_Atomic(uint64_t) *)(void *)(ring + at);
}
/* Bytes of a slot. */
static inline uint32_t mapped_slot(uint32_t len)
{
    return (len + 2 * MAPPED_UNIT - 1) / MAPPED_UNIT * MAPPED_UNIT;
}
static inline uint32_t mapped_next(uint32_t at, uint32_t bytes, uint32_t capacity)
{
    return at + bytes < capacity ? at + bytes : at + bytes - capacity;
}

/* The message of the slot at a place. */
static inline void mapped_view(char *ring, uint32_t at, uint32_t capacity, uint32_t len, struct st_landing_view *view)
{
    uint32_t begin = mapped_next(at, MAPPED_UNIT, capacity), rest = capacity - begin;
    bool wraps = ST_UNLIKELY(len > rest);

    view->first = ring + begin;
    view->first_len = wraps ? rest : len;
    view->second = wraps ? ring : NULL;
    view->second_len = wraps ? len - rest : 0;
    view->marked = false;
}

/* A barrier on all processors: an end that writes and then looks, sees what the other wrote before its barrier. */
void mapped_barrier(void);

#endif

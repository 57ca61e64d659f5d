/* Private to channels: the receiver's end of a mapped ring (mapped.h). */
#ifndef CHANNEL_MAPPED_IN_H
#define CHANNEL_MAPPED_IN_H

#include "channel/mapped.h"

struct mapped_in {
    char *ring; /* NULL: no peer can map it */
    struct mapped_words *words;
    uint64_t read;     /* position of the slot that is to be peeked next */
    uint64_t released; /* everything below was given back */
    uint64_t told;     /* and the sender may know */
    uint32_t at;       /* place of `read` */
    uint32_t capacity;
    uint32_t held;  /* messages that were peeked and not released */
    uint32_t early; /* messages at or above `released` that were released: MAPPED_GIVEN */
    bool on;        /* the sender uses it */
    bool ended;     /* the END was read */
    bool asleep;    /* it has asked to be told */
};

/* The header at the read position; 0: nothing there. */
static inline uint64_t mapped_word(const struct mapped_in *m)
{
    return atomic_load_explicit(mapped_header(m->ring, m->at), memory_order_acquire);
}
/* Whether it is a message that can be true. */
static inline bool mapped_is_message(const struct mapped_in *m, uint64_t word)
{
    uint32_t len = (uint32_t)word;

    return (word & ~MAPPED_MARKED) >> 32 == MAPPED_THERE >> 32 && len < m->capacity &&
           m->read - m->released + mapped_slot(len) + MAPPED_UNIT <= m->capacity;
}

/* Takes the message of that header. The header behind it comes to this processor meanwhile. */
static inline void mapped_take(struct mapped_in *m, uint64_t word, struct st_landing_view *view)
{
    uint32_t len = (uint32_t)word, bytes = mapped_slot(len);

    mapped_view(m->ring, m->at, m->capacity, len, view);
    m->at = mapped_next(m->at, bytes, m->capacity);
    __builtin_prefetch(m->ring + m->at);
    m->read += bytes;
    m->held++;
    view->end = m->read;
    view->marked = word & MAPPED_MARKED;
}

/* Tells the sender what was released. Returns whether it asks to be told by a message: of so much, or with `any` of
 * less. */
static inline bool mapped_tell(struct mapped_in *m, bool any)
{
    atomic_store_explicit(&m->words->head, m->released, memory_order_release);
    m->told = m->released;
    atomic_signal_fence(memory_order_seq_cst); /* as in mapped_publish */
    uint64_t want = atomic_load_explicit(&m->words->want, memory_order_relaxed);
    return ST_UNLIKELY(want != 0 && (any || m->released >= want)) &&
           atomic_exchange_explicit(&m->words->want, 0, memory_order_relaxed) != 0;
}

/* The same where the sender may wait for that: a quarter of the ring, or all there is. */
static inline bool mapped_return(struct mapped_in *m)
{
    uint64_t more = m->released - m->told;

    if (more < m->capacity / 4 && !(m->released == m->read && mapped_word(m) == 0))
        return false;
    return mapped_tell(m, false);
}

/* The same where no message is there: while messages are held the sender may wait for as little as that. */
static inline bool mapped_return_rest(struct mapped_in *m)
{
    return ST_UNLIKELY(m->told != m->released) && mapped_tell(m, true);
}

/* mapped_release where the message is not the oldest, or others were released before it. */
bool mapped_release_early(struct mapped_in *m, uint64_t end, uint32_t bytes);
/* Gives back a held message of len bytes, whose slot is below `end`. False: it is not held. */
static inline bool mapped_release(struct mapped_in *m, uint64_t end, size_t len)
{
    if (m->held == 0 || end > m->read || end <= m->released || len >= m->capacity)
        return false;
    uint32_t bytes = mapped_slot((uint32_t)len);
    if (ST_UNLIKELY(end - bytes != m->released || m->early != 0))
        return mapped_release_early(m, end, bytes);
    m->held--;
    m->released = m->held ? end : m->read;
    return true;
}

/* Memory of a ring of `size` bytes and MAPPED_MORE behind it. */
void mapped_in_open(struct mapped_in *m, char *ring, uint32_t size);
/* Whether the sender uses it, and so it is `on`. */
bool mapped_in_used(struct mapped_in *m);
/* The next message: STRATA_OK; STRATA_ERR_AGAIN: none is there; ST_LANDING_ENDED; STRATA_ERR_PROTOCOL. */
int mapped_in_peek(struct mapped_in *m, struct st_landing_view *view);
/* Waits for the next message, until it comes. */
static inline void mapped_want(struct mapped_in *m)
{
    atomic_store_explicit(&m->words->wants, m->read + MAPPED_UNIT, memory_order_release);
}
/* Asks the sender to tell of the next message; after mapped_barrier, look once more. */
void mapped_in_ask(struct mapped_in *m);

#endif

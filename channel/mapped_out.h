/* Private to channels: the sender's end of a mapped ring (mapped.h). */
#ifndef CHANNEL_MAPPED_OUT_H
#define CHANNEL_MAPPED_OUT_H

#include "channel/mapped.h"

struct mapped_out {
    char *ring; /* NULL: the channel has no mapped ring */
    struct mapped_words *words;
    uint64_t committed;  /* position behind the last slot */
    uint64_t published;  /* the receiver can find slots below */
    uint64_t released;   /* as the receiver said last */
    uint64_t first_word; /* header of the first kept slot, which is not written yet */
    uint32_t at;         /* place of `committed` */
    uint32_t first_at;   /* place of `published` */
    uint32_t capacity;   /* bytes of the ring */
    uint32_t reserved;   /* one more than the bytes; 0: nothing is reserved */
    uint32_t n_kept;     /* messages */
    bool ended;
    struct st_shared_mapping mapping;
};

/* Takes the head up to which the receiver has released. False: it cannot be true. */
static inline bool mapped_look(struct mapped_out *m)
{
    uint64_t head = atomic_load_explicit(&m->words->head, memory_order_acquire);

    if (ST_UNLIKELY(head - m->released > m->committed - m->released))
        return false;
    m->released = head;
    return true;
}
/* Whether there is room for a message and the empty header behind it, as far as is known. */
static inline bool mapped_room(const struct mapped_out *m, size_t len)
{
    return len < m->capacity && m->committed - m->released + mapped_slot((uint32_t)len) + MAPPED_UNIT <= m->capacity;
}

/* The place that mapped_room has found. */
static inline void mapped_reserve(struct mapped_out *m, uint32_t len, struct st_landing_view *view)
{
    mapped_view(m->ring, m->at, m->capacity, len, view);
    view->end = m->committed + mapped_slot(len);
    m->reserved = len + 1;
}

/* The next slot; what is behind it reads as nothing. It is kept until mapped_publish. */
static inline void mapped_commit(struct mapped_out *m, uint32_t len, uint64_t flags)
{
    uint32_t bytes = mapped_slot(len), at = m->at, next = mapped_next(at, bytes, m->capacity);
    uint64_t word = MAPPED_THERE | flags | len;

    atomic_store_explicit(mapped_header(m->ring, next), 0, memory_order_relaxed);
    if (m->n_kept++ == 0)
        m->first_word = word;
    else
        atomic_store_explicit(mapped_header(m->ring, at), word, memory_order_relaxed);
    m->at = next;
    m->committed += bytes;
    m->reserved = 0;
}

/* Kept slots can be found. Returns whether the receiver asks to be told. */
static inline bool mapped_publish(struct mapped_out *m)
{
    if (m->n_kept == 0)
        return false;
    atomic_store_explicit(mapped_header(m->ring, m->first_at), m->first_word, memory_order_release);
    m->first_at = m->at;
    m->published = m->committed;
    m->n_kept = 0;
    /* That processors keep this order, who falls asleep sees to by a barrier on all of them. */
    atomic_signal_fence(memory_order_seq_cst);
    return ST_UNLIKELY(atomic_load_explicit(&m->words->asleep, memory_order_relaxed) != 0);
}

/* Whether what is kept should go now: nothing is in flight, or enough has gathered. *ok: what the receiver says can be
 * true. */
static inline bool mapped_due(struct mapped_out *m, bool *ok)
{
    *ok = true;
    if (m->n_kept % MAPPED_LOOK == 1) {
        *ok = mapped_look(m);
        if (m->released >= m->published)
            return true;
    }
    return m->committed - m->published >= MAPPED_KEPT_MOST;
}

/* The receiver has taken everything and waits for the next message. */
static inline bool mapped_is_wanted(const struct mapped_out *m)
{
    return atomic_load_explicit(&m->words->wants, memory_order_acquire) == m->committed + MAPPED_UNIT;
}

/* Opens it in memory that is mapped. */
void mapped_out_open(struct mapped_out *m, const struct st_shared_mapping *mapping, uint32_t size);
/* Asks the receiver to tell when there is room for that many bytes, unless there is. */
void mapped_out_ask(struct mapped_out *m, size_t len);

#endif

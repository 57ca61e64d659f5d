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

/* The sender's end. */
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

/* The receiver's end. */
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

/* ---- the sender ---- */

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

/* ---- the receiver ---- */

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
/* A barrier on all processors: an end that writes and then looks, sees what the other wrote before its barrier. */
void mapped_barrier(void);

#endif

/* Mapped rings: opening, and asking to be told. */
#define _GNU_SOURCE 1
#include "channel/mapped_in.h"
#include "channel/mapped_out.h"

#include <linux/membarrier.h>
#include <string.h>
#include <strata/strata.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The processes of a transport that maps have registered for it. Where the kernel has none, the bound on every sleep is
 * what is left. */
void mapped_barrier(void)
{
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void mapped_out_open(struct mapped_out *m, const struct st_shared_mapping *mapping, uint32_t size)
{
    *m = (struct mapped_out){.ring = mapping->memory,
                             .words = (struct mapped_words *)(void *)(mapping->memory + size + MAPPED_SPARE),
                             .capacity = size + MAPPED_SPARE,
                             .mapping = *mapping};
    atomic_store_explicit(&m->words->in_use, 1, memory_order_release);
}

void mapped_out_ask(struct mapped_out *m, size_t len)
{
    if (mapped_room(m, len))
        return;
    uint64_t least = m->committed + mapped_slot((uint32_t)len) + MAPPED_UNIT - m->capacity;
    uint64_t want = m->released + m->capacity / 4; /* no wake-up for each small message */

    want = want < m->committed ? want : m->committed;
    atomic_store_explicit(&m->words->want, want > least ? want : least, memory_order_relaxed);
    mapped_barrier();
}

void mapped_in_open(struct mapped_in *m, char *ring, uint32_t size)
{
    *m = (struct mapped_in){.ring = ring,
                            .words = (struct mapped_words *)(void *)(ring + size + MAPPED_SPARE),
                            .capacity = size + MAPPED_SPARE,
                            .asleep = true};
    memset(ring, 0, MAPPED_UNIT);
    memset(m->words, 0, sizeof(*m->words));
    atomic_store_explicit(&m->words->asleep, 1, memory_order_relaxed);
}

bool mapped_in_used(struct mapped_in *m)
{
    if (!m->on && m->ring)
        m->on = atomic_load_explicit(&m->words->in_use, memory_order_acquire) != 0;
    return m->on;
}

int mapped_in_peek(struct mapped_in *m, struct st_landing_view *view)
{
    uint64_t word;

    if (m->ended)
        return ST_LANDING_ENDED;
    word = mapped_word(m);
    if (word == 0)
        return STRATA_ERR_AGAIN;
    if (word == (MAPPED_THERE | MAPPED_END)) {
        m->ended = true;
        m->at = mapped_next(m->at, MAPPED_UNIT, m->capacity);
        m->read += MAPPED_UNIT;
        if (m->held == 0)
            m->released = m->read;
        return ST_LANDING_ENDED;
    }
    if (!mapped_is_message(m, word))
        return STRATA_ERR_PROTOCOL;
    mapped_take(m, word, view);
    return STRATA_OK;
}

/* The header of the slot at a position from `released` to `read`. */
static _Atomic(uint64_t) *mapped_header_at(const struct mapped_in *m, uint64_t position)
{
    uint32_t back = (uint32_t)(m->read - position);

    return mapped_header(m->ring, m->at >= back ? m->at - back : m->at + m->capacity - back);
}

/* Goes past slots that were released before. The peer can write the marks: what it changes is its own credit. */
static void mapped_pass_early(struct mapped_in *m)
{
    while (m->early && m->released < m->read) {
        uint64_t word = atomic_load_explicit(mapped_header_at(m, m->released), memory_order_relaxed);
        uint32_t len = (uint32_t)word;
        if (!(word & MAPPED_GIVEN) || len >= m->capacity || mapped_slot(len) > m->read - m->released)
            return;
        m->released += mapped_slot(len);
        m->early--;
    }
}

bool mapped_release_early(struct mapped_in *m, uint64_t end, uint32_t bytes)
{
    if (end - m->released < bytes)
        return false;
    _Atomic(uint64_t) *header = mapped_header_at(m, end - bytes);
    if (atomic_load_explicit(header, memory_order_relaxed) & MAPPED_GIVEN)
        return false;
    if (end - bytes == m->released) {
        m->released = end;
    } else {
        atomic_store_explicit(header, MAPPED_GIVEN | (bytes - MAPPED_UNIT), memory_order_relaxed);
        m->early++;
    }
    mapped_pass_early(m);
    if (--m->held == 0) {
        m->released = m->read;
        m->early = 0;
    }
    return true;
}

void mapped_in_ask(struct mapped_in *m)
{
    m->asleep = true;
    atomic_store_explicit(&m->words->asleep, 1, memory_order_relaxed);
}

/* Messages that have arrived in a channel's ring, for tests that count them before anybody takes them: strata/channel.h
 * does not tell. Where puts fill the ring, slots whose notification has come; in a mapped ring, slots that can be
 * found. */
#ifndef TEST_SUPPORT_CHANNEL_ARRIVED_H
#define TEST_SUPPORT_CHANNEL_ARRIVED_H

#include "channel/channel.h"
#include "framework/base/landing_slot.h"
#include "support/world.h"

static inline uint32_t arrived_by_puts(const struct st_landing_in *in)
{
    uint64_t at = in->read + (in->ready ? in->slot_lines : 0);
    bool joined = in->ready ? in->joins : in->joined, last = in->ended;
    uint32_t n = in->ready + in->ended;

    while (!last) {
        uint32_t line = landing_place(at, in->lines);
        struct landing_slot slot;
        if (!(joined && line) && !(in->landed[line / 64] >> line % 64 & 1))
            break;
        memcpy(&slot, in->ring + (size_t)line * ST_LANDING_LINE, sizeof(slot));
        CHECK_MSG(line + landing_lines(slot.len) <= in->lines, "a slot that wraps may have arrived by half");
        n += !(slot.flags & LANDING_ASK);
        last = slot.flags & LANDING_END;
        joined = slot.flags & LANDING_MORE;
        at += landing_lines(slot.len);
    }
    return n;
}

static inline uint32_t arrived_by_stores(const struct mapped_in *m)
{
    uint32_t at = m->at, n = m->ended;
    uint64_t word = 0;

    while (!m->ended && !(word & MAPPED_END) &&
           (word = atomic_load_explicit(mapped_header(m->ring, at), memory_order_acquire)) != 0) {
        at = mapped_next(at, mapped_slot((uint32_t)word), m->capacity);
        n++;
    }
    return n;
}

/* Messages that nobody has taken, a long one counted when its descriptor is there; the end of the stream is one, too.
 * In a ring with room left. Makes no progress. */
static inline uint32_t channel_arrived(strata_channel_receiver_t *c)
{
    const struct mapped_in *m = &c->mapped;
    bool mapped = m->on || (m->ring && atomic_load_explicit(&m->words->in_use, memory_order_acquire) != 0);

    return mapped ? arrived_by_stores(m) : arrived_by_puts(c->in);
}

#endif

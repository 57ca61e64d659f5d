/* Private to channels: by which of two operations short messages leave, a put with notice or a send, as trials say. The
 * two carry CHANNEL_TRIAL_LENGTH messages in turn, some rounds of it; the one that had the fastest round carries a long
 * term. A pause makes one round slow, not all. Only arithmetic: whoever sends has the clock. */
#ifndef CHANNEL_TRIAL_H
#define CHANNEL_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#define CHANNEL_TRIAL_LENGTH 64u
#define CHANNEL_TRIAL_ROUNDS 8u /* of both together */
#define CHANNEL_TRIAL_TERM   32768u
/* Messages of up to 256 bytes, of up to 2 kB, and longer ones have a trial each. */
#define CHANNEL_TRIALS 3u

/* One of zeros begins with a round of puts. */
struct channel_trial {
    uint64_t begin;   /* ns: of the round */
    uint64_t best[2]; /* ns: the fastest round by puts and by sends; 0: none yet */
    uint32_t gone;    /* messages of the round or the term */
    uint8_t round;    /* CHANNEL_TRIAL_ROUNDS: the term */
    bool sends;       /* the next message goes by a send */
};

static inline uint32_t channel_trial_of(uint32_t length)
{
    return length <= 256 ? 0 : length <= 2048 ? 1 : 2;
}

/* Whether the next channel_trial_count wants to know the time. */
static inline bool channel_trial_asks(const struct channel_trial *t)
{
    return t->round < CHANNEL_TRIAL_ROUNDS && (t->gone == 0 || t->gone == CHANNEL_TRIAL_LENGTH);
}

/* A message leaves at `now`, ns, which is looked at if channel_trial_asks. t->sends says how. */
static inline void channel_trial_count(struct channel_trial *t, uint64_t now)
{
    if (t->round == CHANNEL_TRIAL_ROUNDS) {
        if (++t->gone == CHANNEL_TRIAL_TERM)
            *t = (struct channel_trial){0};
        return;
    }
    if (t->gone == CHANNEL_TRIAL_LENGTH) { /* so many have gone since the first one of the round */
        uint64_t took = now - t->begin, *best = &t->best[t->sends];
        if (*best == 0 || took < *best)
            *best = took;
        t->sends = !t->sends;
        t->gone = 0;
        if (++t->round == CHANNEL_TRIAL_ROUNDS)
            t->sends = t->best[1] < t->best[0];
    }
    if (t->gone++ == 0)
        t->begin = now;
}

#endif

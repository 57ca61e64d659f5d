/* Private to channels: by which of two operations messages leave, a put with notice or a send, as trials say. The two
 * carry some messages in turn, a round each, and several rounds of it; the one that had the fastest round carries a
 * long term. A pause makes one round slow, not all. Only arithmetic: whoever sends has the clock. */
#ifndef CHANNEL_TRIAL_H
#define CHANNEL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_TRIAL_ROUNDS 8u /* of both together */
/* Messages of up to 256 bytes, of up to 2 kB, of up to 16 kB, and longer ones have a trial each. */
#define CHANNEL_TRIALS 4u

/* Messages of a round, and of a term. */
struct channel_trial_plan {
    uint32_t each, term;
};

static inline uint32_t channel_trial_of(size_t length)
{
    return length <= 256 ? 0 : length <= 2048 ? 1 : length <= 16384 ? 2 : 3;
}

/* Long messages take their time: few say how much. */
static inline struct channel_trial_plan channel_trial_plan(uint32_t class)
{
    return class < 2 ? (struct channel_trial_plan){64, 32768} : (struct channel_trial_plan)
    {
        4, 4096
    };
}

/* One of zeros begins with a round of puts. */
struct channel_trial {
    uint64_t begin;   /* ns: of the round */
    uint64_t best[2]; /* ns: the fastest round by puts and by sends; 0: none yet */
    uint32_t gone;    /* messages of the round or the term */
    uint8_t round;    /* CHANNEL_TRIAL_ROUNDS: the term */
    bool sends;       /* the next message goes by a send */
};

/* Whether the next channel_trial_count wants to know the time. */
static inline bool channel_trial_asks(const struct channel_trial *t, struct channel_trial_plan plan)
{
    return t->round < CHANNEL_TRIAL_ROUNDS && (t->gone == 0 || t->gone == plan.each);
}

/* A message leaves at `now`, ns, which is looked at if channel_trial_asks. t->sends says how. */
static inline void channel_trial_count(struct channel_trial *t, struct channel_trial_plan plan, uint64_t now)
{
    if (t->round == CHANNEL_TRIAL_ROUNDS) {
        if (++t->gone == plan.term)
            *t = (struct channel_trial){0};
        return;
    }
    if (t->gone == plan.each) { /* so many have gone since the first one of the round */
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

/* Private to channels: which of two ways messages of about one length go, by what each way has taken here so far. One
 * way carries a term of messages, then the other a trial; the better one carries the next term. Only arithmetic:
 * whoever sends measures. */
#ifndef CHANNEL_CHOICE_H
#define CHANNEL_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum channel_way {
    CHANNEL_BY_COPY, /* the sender copies, and goes on at once */
    CHANNEL_DIRECT   /* from the sender's own memory to that of a receiver that waits in recv */
};

/* Messages of a trial, and of a term. */
#define CHANNEL_TRIAL 16u
#define CHANNEL_TERM  1024u
/* Messages of a term after which its time is compared with the time that the way took before. */
#define CHANNEL_PIECE 64u
/* The first ones after a change of the way are not counted: what the other way has queued still goes. */
#define CHANNEL_SETTLES 4u
/* Lengths: a class for each power of two, from 2^12 on; the last one has all that are longer. */
#define CHANNEL_CLASSES     12u
#define CHANNEL_LEAST_CLASS 12u

/* Of a class. One of zeros begins with a trial of CHANNEL_BY_COPY. */
struct channel_choice {
    uint64_t fs[2];     /* femtoseconds for a byte, by way; 0: not known yet */
    uint64_t before;    /* the same of the traffic before this one, by any way; 0: there was none */
    uint64_t ns, bytes; /* of the messages that count */
    uint32_t gone;      /* messages of this trial or term */
    uint8_t way;        /* enum channel_way, of the next message */
    bool term;          /* else it is a trial */
};

/* A sender's. */
struct channel_choices {
    struct channel_choice of[CHANNEL_CLASSES]; /* by class */
    uint64_t last;                             /* ns: when the last message that counts was through */
};

static inline uint32_t channel_class(size_t length)
{
    uint32_t bits = 63u - (uint32_t)__builtin_clzll((unsigned long long)length | 1);
    uint32_t class = bits > CHANNEL_LEAST_CLASS ? bits - CHANNEL_LEAST_CLASS : 0;

    return class < CHANNEL_CLASSES ? class : CHANNEL_CLASSES - 1;
}

/* The classes that go straight now, by bit. */
static inline uint32_t channel_wish(const struct channel_choices *c)
{
    uint32_t bits = 0;

    for (uint32_t i = 0; i < CHANNEL_CLASSES; i++)
        bits |= (uint32_t)(c->of[i].way == CHANNEL_DIRECT) << i;
    return bits;
}

/* The time of a message of that length by CHANNEL_BY_COPY, ns; 0: not known. */
static inline uint64_t channel_copy_ns(const struct channel_choice *c, size_t length)
{
    return c->fs[CHANNEL_BY_COPY] * length / 1000000;
}

/* Femtoseconds for a byte of this trial or term so far; 0: nothing counts yet. */
static inline uint64_t channel_pace(const struct channel_choice *c)
{
    return c->bytes ? c->ns * 1000000 / c->bytes + 1 : 0;
}

/* A way may have been slow by accident for once, hardly fast: an estimate grows by a quarter at most. */
static inline void channel_learn(struct channel_choice *c)
{
    uint64_t now = channel_pace(c), *fs = &c->fs[c->way];

    if (now != 0)
        *fs = *fs == 0 || now < *fs + *fs / 4 ? now : *fs + *fs / 4;
}

/* Whether the way that is not c->way is the better one. Direct messages cost the sender time of its own: they must be
 * faster by a sixteenth. */
static inline bool channel_other_wins(const struct channel_choice *c)
{
    uint64_t direct = c->fs[CHANNEL_DIRECT], copy = c->fs[CHANNEL_BY_COPY];
    bool wins = direct < copy - copy / 16;

    return c->way == CHANNEL_BY_COPY ? wins : !wins;
}

/* The term so far took twice or half the time that the way took before: the traffic is another one. */
static inline bool channel_has_changed(const struct channel_choice *c)
{
    uint64_t now = channel_pace(c), before = c->fs[c->way];

    return now != 0 && (now > 2 * before || before > 2 * now);
}

/* A longer time than this, ns, is a pause of whoever sends; or a way that is bad enough as if it had taken so long. */
static inline uint64_t channel_longest(const struct channel_choice *c, size_t bytes)
{
    uint64_t fs = c->fs[c->way] ? c->fs[c->way] : c->fs[!c->way] ? c->fs[!c->way] : c->before;

    return fs ? 8 * fs * bytes / 1000000 : 1000000 + bytes;
}

/* A message of that many bytes went by c->way, so many ns after the one before it. */
static inline void channel_count(struct channel_choice *c, size_t bytes, uint64_t ns)
{
    if (c->gone++ >= CHANNEL_SETTLES) {
        uint64_t longest = channel_longest(c, bytes);
        c->ns += ns < longest ? ns : longest;
        c->bytes += bytes;
    }
    if (c->term && c->gone % CHANNEL_PIECE == 0 && channel_has_changed(c)) {
        /* Neither estimate says anything of it, but how long messages take at all. */
        *c = (struct channel_choice){.before = channel_pace(c)};
        return;
    }
    if (c->gone < (c->term ? CHANNEL_TERM : CHANNEL_TRIAL))
        return;
    channel_learn(c);
    /* After a term, or while the other way is not known, comes its trial; after a trial a term of the better one. */
    c->term = !c->term && c->fs[!c->way] != 0;
    if (!c->term || channel_other_wins(c))
        c->way = !c->way;
    c->ns = c->bytes = 0;
    c->gone = 0;
}

#endif

/* How long the other side has been silent. Only time counts in which this process looked for its word: what has passed
 * since the last look counts up to a quarter of the time-out, since more than that passes only while this process is
 * stopped or has no processor. So four looks, each of which found nothing, come before anybody is called lost. */
#ifndef MIBA_SILENCE_H
#define MIBA_SILENCE_H

#include <stdint.h>

#define SILENCE_LOOKS 4u

struct silence {
    uint64_t looked; /* when; 0: never */
    uint64_t ns;     /* of silence so far */
};

/* A look has found nothing. */
static inline void silence_goes_on(struct silence *s, uint64_t now, uint64_t timeout_ns)
{
    const uint64_t most = timeout_ns / SILENCE_LOOKS, since = s->looked ? now - s->looked : 0;

    s->ns += since < most ? since : most;
    s->looked = now;
}

#endif

/* Reading receive_queues. */
#include "queues/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const priorities[] = {"high", "low"};

/* Where the mistake is. */
static const char *spec_here(const char *at, char out[32])
{
    snprintf(out, 32, *at ? "'%.20s'" : "the end", at);
    return out;
}

/* A number with k or m behind it; *at moves on. */
static bool spec_number(const char **at, uint64_t least, uint64_t most, uint32_t *out)
{
    char *end;
    unsigned long long v;

    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    v = strtoull(*at, &end, 10);
    if (errno || v > UINT32_MAX)
        return false;
    if (*end == 'k' || *end == 'K') {
        v <<= 10;
        end++;
    } else if (*end == 'm' || *end == 'M') {
        v <<= 20;
        end++;
    }
    if (v < least || v > most)
        return false;
    *out = (uint32_t)v;
    *at = end;
    return true;
}

static bool spec_one(const char **at, const char *priority, struct ib_queue_spec *q, char *why, size_t why_size)
{
    const struct {
        const char *name;
        uint32_t *value;
        uint32_t least, most;
    } fields[] = {{"SIZE", &q->size, 512, 1u << 24},
                  {"COUNT", &q->count, 4, 1u << 16},
                  {"LOW", &q->low, 1, 1u << 15},
                  {"CREDITS", &q->credits, 2, 1u << 14}};
    char text[32];

    if (**at != 'S' && **at != 'P') {
        snprintf(why, why_size, "btl_openib_receive_queues, %s priority: expected S or P at %s", priority,
                 spec_here(*at, text));
        return false;
    }
    q->shared = *(*at)++ == 'S';
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *from = *at;
        if (*from != ',') {
            snprintf(why, why_size, "btl_openib_receive_queues, %s priority: expected ',' and %s at %s", priority,
                     fields[i].name, spec_here(from, text));
            return false;
        }
        ++*at;
        if (!spec_number(at, fields[i].least, fields[i].most, fields[i].value)) {
            snprintf(why, why_size, "btl_openib_receive_queues, %s priority: %s must be a number from %u to %u, not %s",
                     priority, fields[i].name, fields[i].least, fields[i].most, spec_here(from + 1, text));
            return false;
        }
    }
    return true;
}

bool ib_queue_spec_parse(const char *text, struct ib_queue_spec out[2], char *why, size_t why_size)
{
    const char *at = text;
    char place[32];

    for (int i = 0; i < 2; i++) {
        if (i == 1 && *at++ != ':') {
            snprintf(why, why_size, "btl_openib_receive_queues: expected ':' and the queue of low priority at %s",
                     spec_here(at - 1, place));
            return false;
        }
        if (!spec_one(&at, priorities[i], &out[i], why, why_size))
            return false;
        if (out[i].shared && out[i].low >= out[i].count) {
            snprintf(why, why_size, "btl_openib_receive_queues, %s priority: LOW (%u) must be less than COUNT (%u)",
                     priorities[i], out[i].low, out[i].count);
            return false;
        }
        out[i].beyond = i == 0 ? IB_BEYOND_HIGH : IB_BEYOND_LOW;
        if (!out[i].shared && out[i].credits + out[i].beyond > out[i].count) {
            snprintf(why, why_size,
                     "btl_openib_receive_queues, %s priority: COUNT (%u) must be %u at least: CREDITS (%u) and %u for "
                     "what needs none",
                     priorities[i], out[i].count, out[i].credits + out[i].beyond, out[i].credits, out[i].beyond);
            return false;
        }
    }
    if (*at) {
        snprintf(why, why_size, "btl_openib_receive_queues: something follows the queue of low priority: '%.20s'", at);
        return false;
    }
    if (out[0].size > out[1].size) {
        snprintf(why, why_size,
                 "btl_openib_receive_queues: buffers of high priority (%u bytes) are larger than those of low (%u)",
                 out[0].size, out[1].size);
        return false;
    }
    return true;
}

/* The parameter receive_queues: TYPE,SIZE,COUNT,LOW,CREDITS for high priority, a colon, the same for low priority. */
#ifndef IB_QUEUE_SPEC_H
#define IB_QUEUE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_queue_spec {
    bool shared;      /* by all peers */
    uint32_t size;    /* bytes of a buffer */
    uint32_t count;   /* most buffers; of a peer when not shared, where credits and control have to fit */
    uint32_t low;     /* at so few the shared queue grows */
    uint32_t credits; /* messages that a peer may send before it hears from us */
    uint32_t beyond;  /* the credits: buffers that a queue of a peer's own has for what needs none */
};

/* Buffers beyond the credits: one is being read while the answer to it, with its credit, is on its way. Control
 * messages come by high priority, and at most six of a peer are unread: credits of either priority twice, CLOSE and
 * BYE. */
#define IB_BEYOND_HIGH 8u
#define IB_BEYOND_LOW  1u

/* Buffers of a receive queue of a peer's own; 0: it is shared. */
static inline uint32_t ib_own_receives(const struct ib_queue_spec *s)
{
    return s->shared ? 0 : s->credits + s->beyond;
}

/* False: `why` says what is wrong and where. */
bool ib_queue_spec_parse(const char *text, struct ib_queue_spec out[2], char *why, size_t why_size);

#endif

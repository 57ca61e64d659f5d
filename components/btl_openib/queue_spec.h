/* The parameter receive_queues: TYPE,SIZE,COUNT,LOW,CREDITS for high priority, a colon, the same for low priority. */
#ifndef IB_QUEUE_SPEC_H
#define IB_QUEUE_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_queue_spec {
    bool shared;      /* by all peers */
    uint32_t size;    /* bytes of a buffer */
    uint32_t count;   /* most buffers; of a peer when not shared */
    uint32_t low;     /* at so few the shared queue grows */
    uint32_t credits; /* messages that a peer may send before it hears from us */
};

/* False: `why` says what is wrong and where. */
bool ib_queue_spec_parse(const char *text, struct ib_queue_spec out[2], char *why, size_t why_size);

#endif

/* What the loops share: arguments, clocks, buffers. Included after a port header, which has
 *   struct port          with `rank` and `n`; rank 0 talks to each other rank, these to rank 0 only
 *   port_open, port_close
 *   port_send(p, to, data, length), which may return before the message has left
 *   port_recv(p, buffer, size): the next message, at rank 0 from any. */
#ifndef TWIN_SUPPORT_H
#define TWIN_SUPPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TWIN_LARGEST = 400000 };

/* What rank 0 has rank 1 do. */
enum { ORDER_STREAM = 1, ORDER_PING_PONG, ORDER_END };
struct order {
    uint64_t what, bytes, messages;
};

static inline double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void *buffer(size_t size)
{
    void *memory = malloc(size);

    if (!memory) {
        fprintf(stderr, "no memory for a message\n");
        exit(1);
    }
    memset(memory, 1, size);
    return memory;
}

#endif

/* Many processes, all connected with all: what the launcher (scale.c) and the processes (scale_process.c) share, in
 * memory that was mapped before they were forked. */
#ifndef TESTS_SOFTHCA_SCALE_H
#define TESTS_SOFTHCA_SCALE_H

#include <stdatomic.h>
#include <stdint.h>

#define MAX_PROCESSES 512

/* Everybody has come so far. */
enum step { OPENED, MADE, CONNECTED, EXCHANGED, TALKING, SATISFIED, STOPPED, STEPS };

struct report {
    uint64_t shared_before; /* bytes of its segment that are there: with the device open and no queue pair */
    uint64_t shared;        /* when every queue pair is connected and has carried a message each way */
    uint64_t asked_for;     /* of these, receive queues and completion queue as they were asked for */
    uint64_t private_kib, page_table_kib;
    uint64_t descriptors;
    _Atomic(uint64_t) sends; /* that have completed, in the traffic after that */
};

struct board {
    uint32_t processes, per_peer; /* queue pairs */
    _Atomic(uint32_t) failed;
    _Atomic(uint32_t) arrived[STEPS];
    _Atomic(uint64_t) when_us[STEPS]; /* the last one came */
    _Atomic(uint32_t) victim[MAX_PROCESSES];
    _Atomic(uint32_t) victims; /* so many are being killed; set when victim[] is */
    _Atomic(uint32_t) stays;   /* traffic goes on until somebody kills us */
    struct report report[MAX_PROCESSES];
    uint32_t qpn[]; /* [process][peer][queue pair] */
};

static inline uint32_t *qpn_at(struct board *b, uint32_t process, uint32_t peer)
{
    return &b->qpn[((uint64_t)process * b->processes + peer) * b->per_peer];
}

uint64_t now_us(void);
void pause_us(long us);
/* What process number `me` does; it returns when all is well, and otherwise ends with a message. */
void scale_process(struct board *b, uint32_t me, int traffic);

#endif

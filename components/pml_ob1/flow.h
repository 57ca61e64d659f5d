/* The flow of long messages to a peer. The soonest way of a message depends on it: one that travels alone is not sent
 * as the messages of a window are. */
#ifndef OB1_FLOW_H
#define OB1_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include "answers.h"

enum ob1_class {
    OB1_WINDOW,  /* one of several under way, or of a stream of messages one way: what both ends spend on it counts */
    OB1_ALONE,   /* nothing else is under way, and the receiver has answered the last one: its latency counts */
    OB1_CROSSES, /* long messages go both ways, so that both ends copy all the time: the copies count */
    OB1_LATE     /* one of a window that nobody waits for, to a receiver that is regularly late: the copies count */
};

/* Messages that do not travel alone after one that was waited for too long; the sender sets `late`, with the lock held.
 */
#define OB1_LATE_FOR 15u
/* Most bytes that count as crossing when nothing comes any more: a window of messages. */
#define OB1_CROSSING (64u << 20)

#define OB1_FLOW_TICK 16u /* ns */

/* Of one peer; all zero at first. */
struct ob1_flow {
    const void *place;    /* in which context the last long message was sent */
    uint64_t bytes_heard; /* that had come there by then */
    uint64_t bytes_paid;  /* of mine that count as crossing */
    uint32_t heard;       /* messages that had come there when the last one that might travel alone was sent */
    uint32_t long_sends;  /* under way: more than one fragment each */
    uint8_t late : 5;     /* so many messages more do not travel alone */
    uint8_t alone : 3;    /* tuned: the last one that travelled alone, its cell among those of its class */
    uint8_t cell;         /* tuned: of the last message of a window */
    struct ob1_answers answers;
    uint32_t since[2]; /* tuned: when the last one of a window and the last one alone were sent, in OB1_FLOW_TICK; 0:
                          not known */
};

/* A message that its class may have announced is about to be sent in a context, of which `place` stands: counters of
 * another one say nothing. */
void ob1_flow_enter(struct ob1_flow *t, const void *place, uint32_t messages_heard, uint64_t bytes_heard);
/* Whether it travels alone; messages_heard: that have come in the context so far. */
bool ob1_flow_alone(struct ob1_flow *t, uint32_t messages_heard);
/* Whether it crosses others: each byte that has come in the context pays for two. */
bool ob1_flow_crosses(struct ob1_flow *t, uint64_t bytes_heard, uint64_t length);

#endif

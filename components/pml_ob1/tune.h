/* Refinement while running (mca_base_tune = online): which of two ways serves messages of one class of traffic (flow.h)
 * and one range of lengths, learnt from the times of real messages.
 *
 * What is timed is the interval from one message to the next of the same kind to the same peer: all that it costs
 * either end, whatever the class. A call that posts an announced message returns long before the message has been
 * fetched, so times count from one moment to another at which no more messages are under way. Now and then four blocks
 * of messages go by the way in use, the other, the way in use, the other; the least mean of a way's two blocks counts.
 * The ways change places when the other one was at least OB1_TUNE_GAIN cheaper in OB1_TUNE_WINS tries in a row. The
 * messages between two tries double each time that the way in use wins, so that a steady program spends one message in
 * a thousand on the other. Pure but for its objects: the caller reads the clock, and tests have one of their own. */
#ifndef OB1_TUNE_H
#define OB1_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "flow.h"

#define OB1_TUNE_GAIN  0.06f /* part of the cost that must be saved */
#define OB1_TUNE_FAR   1.5f  /* as many times as dear: tried again after the longest pause */
#define OB1_TUNE_WINS  2u    /* tries in a row */
#define OB1_TUNE_LEAST 8192u /* bytes: shorter messages go by the hot path, unclassed */
#define OB1_TUNE_SIZES 7u    /* 8 to 16 KiB and so on, 512 KiB to 1 MiB; longer ones go by the facts */
#define OB1_TUNE_KINDS 3u    /* enum ob1_class */
#define OB1_TUNE_NONE  UINT8_MAX

enum ob1_tune_way {
    OB1_TUNE_LIMITS, /* by the limits of the path: fragments, unless it is long */
    OB1_TUNE_ASKED,  /* announced, and got at once */
    OB1_TUNE_WAYS
};

struct ob1_tune_cell {
    float least[OB1_TUNE_WAYS]; /* ns a message: of this try, then of the last one; 0: none yet */
    float sum;                  /* ns of the block */
    uint32_t left;              /* messages until the pause, or this part of the block, may end */
    uint32_t pause;             /* the next one, messages; 0: nothing has been sent yet */
    uint32_t tries, changes;    /* that have ended; changes of the way in use */
    uint32_t backlog;           /* messages under way when the timed part of the block began */
    uint16_t over;              /* messages since `left` is 0: the backlog has to shrink first */
    uint16_t timed;             /* messages of the block in `sum` */
    uint8_t way;                /* in use: enum ob1_tune_way */
    uint8_t block;              /* of a try: 1 to 4; 0: none is under way */
    bool times;                 /* this part of the block is timed */
    uint8_t wins;               /* tries in a row that the other way has won */
};

/* How many messages a block has at least that are not timed, since what was sent before still ends in them, and that
 * are. */
struct ob1_tune_pace {
    uint16_t skipped, timed;
};

/* Of the paths of one module. */
struct ob1_tune {
    struct ob1_tune *next;
    const void *module;
    struct ob1_tune_cell cell[OB1_TUNE_KINDS * OB1_TUNE_SIZES];
};

/* The number of the cell, or OB1_TUNE_NONE for lengths that are not tuned. */
static inline uint8_t ob1_tune_index(enum ob1_class traffic, uint64_t length)
{
    unsigned power;

    if (length < OB1_TUNE_LEAST || length >= (uint64_t)OB1_TUNE_LEAST << OB1_TUNE_SIZES)
        return OB1_TUNE_NONE;
    power = 63u - (unsigned)__builtin_clzll(length / OB1_TUNE_LEAST);
    return (uint8_t)((unsigned)traffic * OB1_TUNE_SIZES + power);
}
struct ob1_tune_pace ob1_tune_pace(enum ob1_class traffic);
/* The way in use at first; before the first ob1_tune_step. */
void ob1_tune_begin(struct ob1_tune_cell *c, enum ob1_tune_way way, struct ob1_tune_pace pace);
/* The way of the next message. ns: since the last one of this cell to the same peer; 0: not known, another message came
 * between. backlog: messages to the peer that are queued or under way. */
enum ob1_tune_way ob1_tune_step(struct ob1_tune_cell *c, uint64_t ns, uint32_t backlog, struct ob1_tune_pace pace);

#endif

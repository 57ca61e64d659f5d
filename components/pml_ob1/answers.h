/* Answers of a receiver to announced messages, and what the sender learns from them: whether the receives of that peer
 * are posted in time or regularly late. Pure but for its objects.
 *
 * The receiver says with the first answer to an announcement what it found, in one byte: a receive that had been
 * posted, or none, and then how long the announcement waited. A message that waits for a shorter time than it takes to
 * move is unexpected and not late: it costs nobody anything. */
#ifndef OB1_ANSWERS_H
#define OB1_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Values of the byte; greater ones say nothing. */
#define OB1_FOUND_NOTHING 0u /* nothing is said */
#define OB1_FOUND_POSTED  1u /* the receive had been posted */
#define OB1_FOUND_WAITED  2u /* and more: log2 of the us that the announcement waited for its receive */
#define OB1_FOUND_MOST    (OB1_FOUND_WAITED + 31u)

#define OB1_ANSWERS      8u  /* remembered of a peer */
#define OB1_ANSWERS_LATE 6u  /* of them late: the peer is regularly late */
#define OB1_ANSWERS_FEW  2u  /* of them late: a peer that was regularly late no longer is */
#define OB1_TRY_FIRST    5u  /* log2 of the messages until one is announced to hear of its receive; late receivers */
#define OB1_TRY_MIXED    8u  /* the same after many of them */
#define OB1_TRY_EARLY    12u /* the same where all receives are posted in time */

enum ob1_habit {
    OB1_HABIT_NONE,  /* unknown, or mixed */
    OB1_HABIT_EARLY, /* the receives of the last answers had all been posted */
    OB1_HABIT_LATE   /* messages regularly wait for their receives */
};

/* Of one peer; all zero at first. */
struct ob1_answers {
    uint8_t late;  /* the last OB1_ANSWERS, a bit each, the newest lowest: 1 was late */
    uint8_t n;     /* answers, OB1_ANSWERS at most */
    uint8_t habit; /* enum ob1_habit */
    uint8_t power; /* log2 of `left` at its start and 1; 0: nothing has been counted yet */
    uint16_t left; /* unannounced messages until one is announced; at first odd, so that windows have each in another
                      place */
};

/* The byte for an announcement that waited so many us. */
uint8_t ob1_found_waited(uint32_t us);
/* Whether the byte, OB1_FOUND_MOST at most, says that a message was late: it waited for longer than it takes to move at
 * mbs MB/s, and for 2 us. */
bool ob1_found_late(uint8_t found, uint64_t length, uint32_t mbs);
/* One more answer. */
void ob1_answers_add(struct ob1_answers *a, bool late);
/* A message would go unannounced, so that nothing is heard of its receive: true when this one is announced instead. */
bool ob1_answers_try(struct ob1_answers *a);
/* "unknown" until there are OB1_ANSWERS, then "early", "late", "mixed". */
const char *ob1_habit_name(const struct ob1_answers *a);
/* Appends ,"receiver":{...}: the habit, the answers that it follows from, unannounced messages until one asks again. */
void ob1_answers_describe(FILE *f, const struct ob1_answers *a);

#endif

/* Messages that are kept: without a receive, or ahead of their turn. */
#ifndef OB1_MESSAGE_H
#define OB1_MESSAGE_H

#include <strata/sdk/pml.h>
#include "match.h"
#include "wire.h"

struct ob1;
struct ob1_cpeer;
struct ob1_stream;

/* A message without a receive, or ahead of its turn; what a matched probe returns. */
struct ob1_msg {
    struct strata_message head;
    struct ob1_unexp unexp;
    struct ob1_cpeer *from;
    struct ob1_arrival a;
    struct ob1_stream *stream;
    struct ob1_msg *next; /* of those for contexts that do not exist yet */
    uint32_t room_size;   /* bytes of payload kept: in `room` when it fits there, else in a block of its own */
    uint32_t since_us;    /* rendezvous: when its turn came and there was no receive */
    char room[];
};
#define OB1_MSG_ROOM 64u

/* message.c: messages kept */
struct ob1_msg *ob1_msg_make(struct ob1 *pml, const struct ob1_arrival *a);
void ob1_msg_free(struct ob1 *pml, struct ob1_msg *msg);
void ob1_msg_drop_payload(struct ob1 *pml, struct ob1_msg *msg);
/* An announcement begins to wait for a receive; a receive takes it. */
void ob1_msg_waits(const struct ob1 *pml, struct ob1_msg *msg);
void ob1_msg_taken(const struct ob1 *pml, struct ob1_msg *msg);

/* throttle.c: the account of unexpected payload; job_rank has sent it */
void ob1_unexpected_grew(struct ob1 *pml, int job_rank, size_t bytes);
void ob1_unexpected_shrank(struct ob1 *pml, size_t bytes);
void ob1_on_throttle(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);

#endif

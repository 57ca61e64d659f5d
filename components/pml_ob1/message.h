/* Messages that are kept: without a receive, or ahead of their turn. */
#ifndef OB1_MESSAGE_H
#define OB1_MESSAGE_H

#include <strata/sdk/btl_hints.h>
#include <strata/sdk/pml.h>
#include "match.h"
#include "wire.h"

struct ob1;
struct ob1_cpeer;
struct ob1_stream;

#define OB1_MSG_ROOM 64u

/* A payload that stays in the transport's memory: a.btl of the message. */
struct ob1_kept {
    struct st_btl_kept head;
    struct ob1 *pml;
    struct st_node node; /* of all such messages */
};

/* A message without a receive, or ahead of its turn; what a matched probe returns. */
struct ob1_msg {
    struct strata_message head;
    struct ob1_unexp unexp;
    struct ob1_cpeer *from;
    struct ob1_arrival a;
    struct ob1_stream *stream;
    struct ob1_msg *next; /* of those for contexts that do not exist yet */
    uint32_t room_size;   /* bytes of payload copied: to `room` when it fits there, else to a block of its own. Fewer
                             than a.len: the payload is in the transport's memory */
    uint32_t since_us;    /* rendezvous: when its turn came and there was no receive */
    union {
        char room[OB1_MSG_ROOM];
        struct ob1_kept kept;
    };
};
_Static_assert(sizeof(struct ob1_kept) <= OB1_MSG_ROOM, "keeping a payload makes no message larger");

/* message.c: messages kept */
struct ob1_msg *ob1_msg_make(struct ob1 *pml, const struct ob1_arrival *a);
void ob1_msg_free(struct ob1 *pml, struct ob1_msg *msg);
void ob1_msg_drop_payload(struct ob1 *pml, struct ob1_msg *msg);
/* Whether the message was lost: its transport took the memory back, and there was no memory for a copy. */
static inline bool ob1_is_lost(const struct ob1_arrival *a)
{
    return a->type <= OB1_EAGER_SYNC && a->len < a->length;
}
void ob1_kept_release(struct ob1 *pml); /* all payloads in memory of transports: the messages are lost */
/* An announcement begins to wait for a receive; a receive takes it. */
void ob1_msg_waits(const struct ob1 *pml, struct ob1_msg *msg);
void ob1_msg_taken(const struct ob1 *pml, struct ob1_msg *msg);

/* throttle.c: the account of unexpected payload; job_rank has sent it */
void ob1_unexpected_grew(struct ob1 *pml, int job_rank, size_t bytes);
/* Payload that left the memory of a transport: counted, and looked at when the next one grows. */
void ob1_unexpected_left(struct ob1 *pml, size_t bytes);
void ob1_unexpected_shrank(struct ob1 *pml, size_t bytes);
void ob1_on_throttle(struct ob1 *pml, const struct st_frag *frag, const union wire_any *h);

#endif

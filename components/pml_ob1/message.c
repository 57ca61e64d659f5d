/* Messages that are kept: unexpected, ahead of their turn, or for a context that does not exist yet. */
#include <strata/sdk/clock.h>
#include "answers.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "stream.h"
#include "wire.h"

/* Keeps what `a` says, with a copy of its payload. NULL: out of memory. */
struct ob1_msg *ob1_msg_make(struct ob1 *pml, const struct ob1_arrival *a)
{
    struct ob1_msg *msg = st_slab_get(&pml->messages);

    if (!msg)
        return NULL;
    msg->head.comm = NULL;
    msg->from = NULL;
    msg->a = *a;
    msg->stream = NULL;
    msg->next = NULL;
    msg->room_size = a->len;
    if (a->len <= OB1_MSG_ROOM) {
        st_copy(msg->room, a->data, a->len);
        msg->a.data = msg->room;
    } else {
        void *copy = st_block_get(&pml->payloads, a->len);
        if (!copy) {
            st_slab_put(&pml->messages, msg);
            return NULL;
        }
        st_copy_long(copy, a->data, a->len);
        msg->a.data = copy;
        ob1_unexpected_grew(pml, a->job_rank, a->len);
    }
    return msg;
}

/* Lets the payload go, not the message. */
void ob1_msg_drop_payload(struct ob1 *pml, struct ob1_msg *msg)
{
    if (msg->room_size > OB1_MSG_ROOM) {
        st_block_put(&pml->payloads, (void *)(uintptr_t)msg->a.data, msg->room_size);
        ob1_unexpected_shrank(pml, msg->room_size);
    }
    msg->room_size = 0;
    msg->a.data = NULL;
    msg->a.len = 0;
}

void ob1_msg_free(struct ob1 *pml, struct ob1_msg *msg)
{
    ob1_msg_drop_payload(pml, msg);
    if (msg->stream)
        ob1_stream_drop(pml, msg->stream);
    st_slab_put(&pml->messages, msg);
}

/* A clock of 32 bits goes round in more than an hour: what waits for longer looks as if it had not waited. */
static uint32_t ob1_msg_clock(void)
{
    return (uint32_t)(st_now_ns() / 1000);
}

void ob1_msg_waits(const struct ob1 *pml, struct ob1_msg *msg)
{
    if (pml->tells)
        msg->since_us = ob1_msg_clock();
}

void ob1_msg_taken(const struct ob1 *pml, struct ob1_msg *msg)
{
    if (pml->tells)
        msg->a.found = ob1_found_waited(ob1_msg_clock() - msg->since_us);
}

/* Messages that are kept: unexpected, ahead of their turn, or for a context that does not exist yet. */
#include <strata/sdk/clock.h>
#include "answers.h"
#include "message.h"
#include "ob1.h"
#include "ob1_inl.h"
#include "stream.h"
#include "wire.h"

/* Copies the payload to a block. */
static bool ob1_msg_copy(struct ob1 *pml, struct ob1_msg *msg)
{
    void *copy = st_block_get(&pml->payloads, msg->a.len);

    if (!copy)
        return false;
    st_copy_long(copy, msg->a.data, msg->a.len);
    msg->a.data = copy;
    msg->room_size = msg->a.len;
    return true;
}

/* The transport takes its memory back. Whether the sender has to be throttled is asked with the next message kept. */
static void ob1_kept_leave(struct st_btl_kept *head)
{
    struct ob1_kept *kept = ST_CONTAINER(head, struct ob1_kept, head);
    struct ob1_msg *msg = ST_CONTAINER(kept, struct ob1_msg, kept);

    st_list_remove(&kept->node);
    if (ob1_msg_copy(kept->pml, msg)) {
        ob1_unexpected_left(kept->pml, msg->a.len);
    } else {
        msg->a.data = NULL;
        msg->a.len = 0;
    }
}

/* Keeps the payload in the transport's memory; false: it cannot be. Fragments of other types are not whole messages. */
static bool ob1_msg_keep(struct ob1 *pml, struct ob1_msg *msg)
{
    struct st_btl *btl = msg->a.btl;

    if (!btl || !btl->hints->keep || msg->a.type > OB1_EAGER_SYNC)
        return false;
    msg->kept.head.leave = ob1_kept_leave;
    if (!btl->hints->keep(btl, msg->a.data, msg->a.len, &msg->kept.head))
        return false;
    msg->kept.pml = pml;
    st_list_append(&pml->kept, &msg->kept.node);
    ob1_unexpected_grew(pml, msg->a.job_rank, 0);
    return true;
}

static void ob1_msg_release(struct ob1_msg *msg)
{
    st_list_remove(&msg->kept.node);
    msg->a.btl->hints->release(msg->a.btl, &msg->kept.head);
}

/* Messages that a probe took and nobody received are among them. */
void ob1_kept_release(struct ob1 *pml)
{
    struct st_node *n;

    while ((n = st_list_first(&pml->kept)) != NULL)
        ob1_msg_drop_payload(pml, ST_CONTAINER(n, struct ob1_msg, kept.node));
}

/* Keeps what `a` says, with its payload. NULL: out of memory. */
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
    msg->room_size = 0;
    if (a->len <= OB1_MSG_ROOM) {
        st_copy(msg->room, a->data, a->len);
        msg->a.data = msg->room;
        msg->room_size = a->len;
    } else if (!ob1_msg_keep(pml, msg)) {
        if (!ob1_msg_copy(pml, msg)) {
            st_slab_put(&pml->messages, msg);
            return NULL;
        }
        ob1_unexpected_grew(pml, a->job_rank, a->len);
    }
    return msg;
}

/* Lets the payload go, not the message. */
void ob1_msg_drop_payload(struct ob1 *pml, struct ob1_msg *msg)
{
    if (msg->room_size < msg->a.len) {
        ob1_msg_release(msg);
    } else if (msg->room_size > OB1_MSG_ROOM) {
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

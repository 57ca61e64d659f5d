/* Private to channels: messages that are longer than the ring. The sender keeps such a message in memory of its own and
 * commits a descriptor in its place, as a marked slot. The receiver gets the bytes, or asks for parts by active
 * messages where the transport has no get, and then says TAKEN. docs/design/channel.md. */
#ifndef CHANNEL_LONG_H
#define CHANNEL_LONG_H

#include "channel/channel.h"
#include "channel/memory.h"

/* Long messages of a sender that the receiver has not taken, at most. */
#define CHANNEL_LONGS 2u
/* The place behind these is for one that is the user's memory. */
#define CHANNEL_LONG_DIRECT CHANNEL_LONGS
/* Bytes of one get, and gets of one message in flight. */
#define CHANNEL_GET_BYTES (256u * 1024)
#define CHANNEL_GETS      4u
/* Parts that the receiver asks for at once. */
#define CHANNEL_PARTS 32u

/* A descriptor, as it travels in a marked slot. */
struct channel_long {
    uint64_t length;  /* of the message */
    uint64_t address; /* in the sender */
    uint32_t id;      /* of the message; another for each of a context */
    uint32_t part;    /* bytes of a part */
    uint8_t key[ST_BTL_KEY_MAX];
    uint32_t has_key; /* the memory is registered, or need not be: the receiver may get it */
    uint32_t zero;
};

_Static_assert(sizeof(struct channel_long) <= CHANNEL_DESCRIPTOR, "room is asked for it");

/* A long message at the sender. */
struct channel_out {
    strata_channel_sender_t *c;
    struct channel_memory memory; /* kept for the next one */
    struct st_work work;          /* while `queued`: parts that were asked for and not sent */
    uint64_t at, end;             /* these; at == end: none */
    struct st_landing_view slot;  /* while it is reserved */
    uint64_t length;              /* of the message, or reserved for it */
    uint32_t id;
    uint32_t part; /* as in the descriptor */
    bool has_key;
    bool sent; /* committed and not taken yet */
    bool queued;
};

/* A long message at the receiver, from the look at its descriptor until its release. */
struct channel_in {
    strata_channel_receiver_t *c;
    struct st_node held; /* in the receiver's list once it was handed out */
    struct channel_long d;
    struct st_landing_view slot;  /* of the descriptor */
    struct channel_memory memory; /* where the bytes go to */
    struct st_work work;          /* while `queued`: gets to be started */
    struct channel_get {
        struct st_btl_op op;
        struct channel_in *in;
        bool busy;
    } gets[CHANNEL_GETS];
    uint64_t want;    /* bytes that are taken of d.length */
    uint64_t next;    /* the first byte that no get or request for parts covers */
    uint64_t window;  /* by parts: the first byte of the last request */
    uint32_t missing; /* by parts: bit of each part of it that has not arrived */
    uint32_t n_gets;  /* in flight */
    int rc;           /* STRATA_ERR_AGAIN: it moves; STRATA_OK: it is there; else it cannot be had */
    bool started, by_parts, queued;
};

/* long_out.c. With the lock held. */
/* The place of a long message, as strata_channel_reserve; then channel_out_commit. */
int channel_out_reserve(strata_channel_sender_t *c, size_t length, strata_channel_view_t *view);
int channel_out_commit(strata_channel_sender_t *c, size_t length);
/* Announces a message that stays in the user's memory until channel_out_is_taken. STRATA_ERR_AGAIN: not now. */
int channel_out_direct(strata_channel_sender_t *c, const void *data, size_t length);
/* STRATA_OK: the user's memory may be used again; STRATA_ERR_AGAIN: not yet; or what has broken the channel. */
int channel_out_is_taken(strata_channel_sender_t *c);
/* The receiver has taken a message, or asks for parts. What is wrong, or NULL. */
const char *channel_out_taken(strata_channel_sender_t *c, uint32_t id);
const char *channel_out_pull(strata_channel_sender_t *c, const struct channel_head *head);
/* Frees what is left; the receiver gets nothing any more. */
void channel_out_close(strata_channel_sender_t *c);

/* long_in.c. With the lock held. */
/* Begins with the message of a marked slot. Anything but STRATA_OK has broken the channel. */
int channel_in_begin(strata_channel_receiver_t *c, const struct st_landing_view *slot);
/* Moves the message that has begun to `buffer` of `size` bytes, or with NULL to memory of its own. STRATA_ERR_AGAIN
 * until it is there; STRATA_ERR_NOMEM: no such memory, and nothing was moved; else what has broken the channel. */
int channel_in_move(strata_channel_receiver_t *c, void *buffer, size_t size);
/* Whether channel_in_move would have more to say than STRATA_ERR_AGAIN, or has to be called for a first time. */
bool channel_in_has_news(const struct channel_in *in);
/* A part has arrived. What is wrong, or NULL. */
const char *channel_in_part(strata_channel_receiver_t *c, const struct channel_head *head, const struct st_frag *frag);
/* Frees it; no get is in flight. */
void channel_in_free(struct channel_in *in);

#endif

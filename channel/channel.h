/* Private to channels: both ends, the record of a peer, messages between the ends. docs/design/channel.md. */
#ifndef CHANNEL_CHANNEL_H
#define CHANNEL_CHANNEL_H

#include <strata/channel.h>
#include <strata/sdk/landing_ends.h>
#include "channel/mapped_in.h"
#include "channel/mapped_out.h"
#include "channel/table.h"
#include "channel/trial.h"

#define CHANNEL_NAME_SIZE (STRATA_CHANNEL_NAME_MAX + 1)
/* Lines of channel_log in a context, at most. */
#define CHANNEL_LOGGED 16u

/* The client of a context. */
struct channels {
    struct st_worker *w;
    struct st_node kept;       /* senders with messages that wait for others */
    struct st_node closed;     /* receivers that wait for their sender to close */
    struct st_node aborted;    /* senders that were given up and wait for their receiver */
    ST_ATOMIC(uint64_t) bytes; /* of everything but rings and long messages */
    uint64_t long_bytes;       /* memory of long messages */
    uint32_t next_id;          /* of the next long message */
    uint32_t next_use;         /* of a ring's number, by the next receiver */
    uint64_t n_dropped;        /* messages about channels that could not be true */
    ST_ATOMIC(uint32_t) n_log; /* calls of channel_log */
    uint32_t copy_least;       /* st_copy_shared_least() */
    size_t direct_min;         /* from here on messages may go straight to a receiver that waits */
};

/* Messages about a ring; the header of each. A CARD has a struct channel_card as its data. They arrive in any order. */
enum channel_kind {
    CHANNEL_CARD, /* to the sender: here is a ring */
    CHANNEL_STOP, /* to the sender: the receiver takes nothing more */
    CHANNEL_BYE,  /* to the receiver: the sender has closed, the ring's name is free; CHANNEL_BYE_BROKEN */
    /* Of a long message, by its id: */
    CHANNEL_TAKEN, /* to the sender: the receiver has all that it wants */
    CHANNEL_PULL,  /* to the sender: parts from `offset` on, `length` bytes in all, are wanted */
    CHANNEL_PART,  /* to the receiver: the part at `offset`, which is the message's data */
    /* Of a mapped ring, to an end that has asked to be told: */
    CHANNEL_LOOK, /* to the receiver: there is a message */
    CHANNEL_ROOM, /* to the sender: there is room */
    /* Of a mapped ring, whose memory may be gone next: */
    CHANNEL_DONE, /* to the sender: everything up to the end was released */
    /* Of a ring that is filled by puts: */
    CHANNEL_WISH, /* to the receiver: it shall say when it waits, after messages of the classes `length`; choice.h */
    CHANNEL_WANT /* to the sender: the receiver waits for the message at position `offset`; data: struct channel_want */
};
struct channel_head {
    uint32_t kind, ring;
    uint32_t id, zero; /* id, of a card and a stop: which use of the ring's number they are about */
    uint64_t offset, length;
};
/* `length` of a BYE: nothing more comes, but the sender keeps long messages until the receiver stops. A second BYE
 * follows, which frees the name. */
#define CHANNEL_BYE_BROKEN 1u
_Static_assert(sizeof(struct channel_head) <= ST_BTL_HDR_MAX, "it travels as a header");
/* The header of bytes for a ring that come by a message instead of a put; told from the others by its length. */
struct channel_bytes {
    uint32_t notice; /* as a put's would be */
    uint32_t zero[3];
};
/* The header of one slot whose message is the data; told from the others by its length. */
struct channel_slot {
    uint32_t notice; /* as a put's would be */
    uint32_t zero;
    uint8_t slot[ST_LANDING_HEAD];
};
_Static_assert(sizeof(struct channel_slot) != sizeof(struct channel_bytes) &&
                   sizeof(struct channel_slot) != sizeof(struct channel_head),
               "they are told by their lengths");
struct channel_card {
    struct st_landing_card card;
    uint32_t path;
    uint32_t mappable; /* 1: MAPPED_MORE bytes lie behind the ring */
    char name[CHANNEL_NAME_SIZE];
};

/* A ring of the peer's that this side may fill. */
struct channel_offer {
    bool carded, stopped;
    uint32_t use;             /* which one of the ring's number: that of the card, before it that of a stop */
    struct channel_card card; /* once carded */
    strata_channel_sender_t *sender;
};

/* A peer's channels, in st_peer.client. */
struct channel_peer {
    struct st_peer *peer;
    struct channel_table offers;                 /* struct channel_offer, by ring; the peer's */
    struct channel_table in;                     /* strata_channel_receiver_t, by ring; ours */
    struct channel_trial trials[CHANNEL_TRIALS]; /* of all senders to it whose rings are filled by puts */
    bool heard; /* a message has come from it since one went to it by a put or a send */
};

struct strata_channel_sender {
    struct channels *ch;
    struct channel_peer *with;
    struct channel_offer *offer;       /* NULL until the receiver has one */
    struct mapped_out mapped;          /* the ring, once it is opened, */
    struct st_landing_sender *landing; /* or this where it cannot be mapped */
    uint32_t n_sends;                  /* puts that went by a send */
    bool sends;                        /* what goes now is offered to a send */
    ST_ATOMIC(bool) slow;              /* of a mapped ring: broken or ended; the slow way says */
    struct st_node kept;               /* in the context's list while `is_kept` or `aborted` */
    int rc;                            /* what has broken it before there was a ring, or a mapped ring */
    bool is_kept, ended;
    bool aborted;                  /* nobody uses it any more; abort.c */
    bool done;                     /* of a mapped ring: the receiver has released everything, up to the end */
    struct channel_out *longs;     /* once there was one; long.h */
    struct channel_direct *direct; /* once a message could go straight to the receiver; direct.h */
    struct channel_out *reserved;  /* the place that was reserved last, if it is for a long message */
    char name[CHANNEL_NAME_SIZE];
};

struct strata_channel_receiver {
    struct channels *ch;
    struct channel_peer *with;
    struct st_landing_receiver *landing; /* the ring's memory, and its end where it is filled by puts */
    const struct st_landing_in *in;      /* the latter */
    struct mapped_in mapped;             /* its end where the sender has mapped it */
    struct st_node closed;
    struct channel_in *coming;       /* a long message that was not handed out yet, or NULL; long.h */
    struct st_node held;             /* long messages that were */
    struct channel_awaited *awaited; /* once the sender wished for it; direct.h */
    /* A recv that waits where puts fill the ring: a message that comes by itself is copied straight there. */
    struct channel_into {
        void *to;        /* NULL: none waits, or it has its message */
        size_t size;     /* bytes there */
        uint32_t length; /* of the message, */
        bool taken;      /* once it is there */
    } into;
    size_t last;               /* bytes of the last message that recv took the slow way */
    strata_channel_set_t *set; /* or NULL */
    struct st_node ready;      /* in the set's list while `is_ready` */
    bool is_ready;
    uint32_t ring, use;        /* its number, and which use of it; struct channel_offer */
    int rc;                    /* STRATA_OK, or what the sender did that breaks the channel whatever is in the ring */
    uint8_t path;              /* that the ring is bound to */
    bool bye;                  /* the sender has closed */
    ST_ATOMIC(bool) all_taken; /* of a mapped ring: everything up to its end was released */
};

/* Whether the path carries channels: a ring is mapped, or filled by puts, and credits are puts. */
static inline bool channel_can_go(const struct st_btl_endpoint *ep)
{
    return ep->btl->rdma->map || (ep->caps & ST_BTL_PUT);
}

/* tell.c. With the lock held. */
int channel_peer_of(struct channels *ch, int rank, bool connect, struct channel_peer **out);
/* data: `len` bytes, as much as a card at most. */
int channel_tell(struct channels *ch, struct st_peer *peer, const struct channel_head *head, const void *data,
                 uint32_t len);
/* A peer has violated the protocol. The first ones are logged: a peer must not be able to fill the log. */
void channel_log(struct channels *ch, const struct st_peer *peer, const char *wrong);
/* Of a call's arguments: STRATA_OK, or what is wrong. */
int channel_check(strata_t *s, int rank, const char *name);

/* Takes a sender out of the list of those with messages that wait for others. */
static inline void channel_unkeep(strata_channel_sender_t *c)
{
    if (c->is_kept)
        st_list_remove(&c->kept);
    c->is_kept = false;
}

/* client.c. Messages that waited for others leave. With the lock held, or where it is not `threaded`. */
void channel_flush_kept(struct channels *ch);

/* Bytes of a descriptor of a long message. */
#define CHANNEL_DESCRIPTOR 64u

/* limit.c: calls `attempt` under the lock until it does not give STRATA_ERR_AGAIN or the limit is over. */
int channel_try(struct channels *ch, int (*attempt)(void *arg), void *arg, int64_t limit_ms);
/* The same, with `ask` called before the attempts that a sleep may follow, under the lock: whoever ends the wait is
 * asked to tell. */
int channel_try_asking(struct channels *ch, int (*attempt)(void *arg), void (*ask)(void *arg), void *arg,
                       int64_t limit_ms);

/* set.c. With the lock held. The end may have something to take. */
void channel_set_ready(strata_channel_receiver_t *c);
/* It leaves its set, if it is in one. */
void channel_set_leave(strata_channel_receiver_t *c);

/* direct.c. Sends as strata_channel_send does, of ch->direct_min bytes at least. Without the lock. */
int channel_direct_send(strata_channel_sender_t *c, const void *data, size_t length,
                        int (*by_copy)(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms));
void channel_direct_close(strata_channel_sender_t *c);

/* memory.c. Memory of zeros that is counted; NULL: none. Any thread, with or without the lock. */
void *channel_alloc(struct channels *ch, size_t size);
void channel_free(struct channels *ch, void *memory, size_t size);

/* sender.c. With the lock held. An offer for the channel that no sender has, or NULL. */
struct channel_offer *channel_offer_find(strata_channel_sender_t *c);
/* The offer goes, and the receiver is told that its ring's name is free. */
void channel_sender_bye(strata_channel_sender_t *c);
/* Frees a sender whose slots are closed. */
void channel_sender_free(strata_channel_sender_t *c);

/* abort.c. With the lock held: frees senders that were given up, as far as their receivers are done with them. */
void channel_aborted_sweep(struct channels *ch);
/* No peer sends or reads any more: frees all. */
void channel_aborted_free(struct channels *ch);

/* receiver.c: frees receivers whose sender has closed; all: whatever it says. Without the lock. */
void channel_sweep(struct channels *ch, bool all);

static inline struct channel_offer *channel_offer_of(const struct channel_peer *with, uint32_t ring)
{
    return channel_table_get(&with->offers, ring);
}
static inline strata_channel_receiver_t *channel_receiver_of(const struct channel_peer *with, uint32_t ring)
{
    return channel_table_get(&with->in, ring);
}

static inline strata_channel_view_t channel_view(const struct st_landing_view *v)
{
    return (strata_channel_view_t){v->first, v->second, v->first_len, v->second_len, v->end};
}

#endif

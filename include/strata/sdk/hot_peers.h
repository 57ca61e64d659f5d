/* Places for hot peers: a few peers have a private place (a ring) at a receiver, which may pass from peer to peer. The
 * polling set (polling_set.h) selects the hot peers; this module grants, revokes and hands over places without loss or
 * duplication of messages. Users: the rings of btl_sm and those of btl_openib's eager RDMA.
 *
 * The receiver writes a word for each peer, which the peer can read: 0, or the peer's place with a generation. The peer
 * reads its word before each send:
 *
 *   FREE -> GRANTED: the user prepares the place, then the peer's word names it.
 *   GRANTED -> REVOKED: the word is 0; the place is still polled.
 *   REVOKED -> FREE: the peer has seen the change of its word, at its next send or after a nudge by another channel,
 * and has ended its use of the place with a farewell. All its messages in the place precede the farewell; the peer
 * changes the channel itself.
 *   BROKEN: the peer has violated the protocol. The place is not polled, and not granted again.
 *   UNUSABLE: the user could not prepare the place, for lack of memory. It is not granted; other places are not
 * affected.
 *
 * Not thread safe. */
#ifndef STRATA_SDK_HOT_PEERS_H
#define STRATA_SDK_HOT_PEERS_H

#include <strata/sdk/polling_set.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Never a word: "I have no place". */
#define ST_HOT_NONE UINT32_MAX
/* Most places: a word has 16 bits for one. */
#define ST_HOT_MOST 0xfffeu

/* State of a place: see above. */
enum st_hot_state { ST_HOT_FREE, ST_HOT_GRANTED, ST_HOT_REVOKED, ST_HOT_BROKEN, ST_HOT_UNUSABLE };

/* Functions provided by the user. */
struct st_hot_ops {
    /* Prepares the place for the peer. Any value other than STRATA_OK: the place is unusable. */
    int (*ready)(void *arg, uint32_t place, uint32_t peer);
    /* Stores the peer's word with release, so that a peer that has read it finds the place prepared. */
    void (*tell)(void *arg, uint32_t peer, uint32_t word);
    /* The order of polling (st_hot.order) has changed. May be NULL. */
    void (*ordered)(void *arg);
};
/* Makes the peer read its word although it sends nothing, by another channel. STRATA_ERR_AGAIN: try later. */
typedef int (*st_hot_nudge_fn)(void *arg, uint32_t place, uint32_t peer);

/* A place, as the user may read it. */
struct st_hot_place {
    uint32_t peer; /* current or last owner; UNUSABLE: ST_HOT_NONE */
    uint8_t state; /* enum st_hot_state */
    bool nudged;   /* REVOKED: the peer has been nudged */
};

/* The receiver's side. Read-only for the user. */
struct st_hot {
    struct st_hot_place *places; /* n_places */
    uint32_t *order;             /* places to poll, the hottest first: n_order */
    uint32_t n_places;           /* entries of places */
    uint32_t n_order;            /* entries of order */
    uint32_t n_revoked;  /* places that wait for a farewell: while there are some, call st_hot_nudge now and then */
    uint32_t n_unusable; /* places in this state */
    uint32_t generation; /* of words */
    bool off;            /* no more grants: st_hot_give_up was called, or all places are unusable */
    struct st_polling_set *set;   /* selects the hot peers */
    const struct st_hot_ops *ops; /* the user's */
    void *arg;                    /* their first argument */
};

/* Makes an object with config->max_members places for peers 0..n_peers-1. STRATA_ERR_NOMEM; STRATA_ERR_ARG: more than
 * ST_HOT_MOST. */
ST_API int st_hot_create(struct st_hot *hot, const struct st_polling_set_config *config, uint32_t n_peers,
                         const struct st_hot_ops *ops, void *arg);
/* Frees its memory; a zeroed object has none. */
ST_API void st_hot_destroy(struct st_hot *hot);
/* Counts a message of the peer by the shared channel: the peer may get a place, also one of another peer. */
ST_API void st_hot_shared_arrival(struct st_hot *hot, uint32_t peer);
/* Counts n messages by the place. True: the order of polling has changed. */
static inline bool st_hot_arrivals(struct st_hot *hot, uint32_t place, uint32_t n)
{
    return st_polling_set_ring_arrival(hot->set, place, n);
}
/* Revokes all granted places, for a receiver that is about to sleep: peers that continue to send get places again. */
ST_API void st_hot_revoke_all(struct st_hot *hot);
/* Revokes a place that cannot serve its peer any longer, and ends all grants. */
ST_API void st_hot_give_up(struct st_hot *hot, uint32_t place);
/* Nudges the peers whose places were revoked, each once; `nudge` gets the user's `arg`. */
ST_API void st_hot_nudge(struct st_hot *hot, st_hot_nudge_fn nudge);
/* Handles the peer's farewell, which the peer may send without a request. */
ST_API void st_hot_left(struct st_hot *hot, uint32_t place);
/* Marks the place of a peer that has violated the protocol. */
ST_API void st_hot_broken(struct st_hot *hot, uint32_t place);
/* The place of a peer, also a broken one; ST_HOT_NONE: none. */
ST_API uint32_t st_hot_place_of(const struct st_hot *hot, uint32_t peer);
/* Memory that it holds. */
ST_API size_t st_hot_bytes(const struct st_hot *hot);

/* The sender's side. */
struct st_hot_grant {
    uint32_t word; /* of the place in use, or ST_HOT_NONE */
    uint32_t left; /* of the last place that the sender has left */
};

/* Action of the sender required by a word. */
enum st_hot_turn {
    ST_HOT_STAY,  /* nothing: the place in use; or 0, or a left place whose farewell has not been read */
    ST_HOT_LEAVE, /* end the use of the place with a farewell; then grant->left = grant->word, grant->word = ST_HOT_NONE
                   */
    ST_HOT_TAKE   /* use the place that the word names (st_hot_word_place), once it has been checked */
};
/* Returns the action for the current value of the sender's word. */
static inline enum st_hot_turn st_hot_turn(const struct st_hot_grant *grant, uint32_t word)
{
    if (word == grant->word)
        return ST_HOT_STAY;
    if (grant->word != ST_HOT_NONE)
        return ST_HOT_LEAVE;
    return word == 0 || word == grant->left ? ST_HOT_STAY : ST_HOT_TAKE;
}
/* The place that a word names; from the peer, so check it. */
static inline uint32_t st_hot_word_place(uint32_t word)
{
    return (word & 0xffffu) - 1;
}

#ifdef __cplusplus
}
#endif
#endif

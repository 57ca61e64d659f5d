/* Places for hot peers: a few peers have a private place (a ring) at a receiver, which may pass from peer to peer. The
 * polling set (polling_set.h) selects the hot peers; this module grants, revokes and hands over places without loss or
 * duplication of messages. Users: the rings of btl_sm and those of btl_openib's eager RDMA.
 *
 * The receiver writes a word for each peer, which the peer sees: 0, or the place that it has, with a generation. The
 * peer looks at its word before each send:
 *
 *   FREE -> GRANTED: the user makes the place ready, then the peer's word names it.
 *   GRANTED -> REVOKED: the word is 0; the place is polled on.
 *   REVOKED -> FREE: the peer has seen the change of its word, at its next send or after a nudge by another channel,
 * and has ended its use of the place with a farewell. All its messages in the place precede the farewell; the peer
 * changes the channel itself.
 *   BROKEN: the peer has violated the protocol. The place is not polled, and given to nobody else.
 *   UNUSABLE: the user could not make the place ready, as there is no memory. It is given to nobody; others change
 * hands as before.
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

/* Of a place: see above. */
enum st_hot_state { ST_HOT_FREE, ST_HOT_GRANTED, ST_HOT_REVOKED, ST_HOT_BROKEN, ST_HOT_UNUSABLE };

/* Functions provided by the user. */
struct st_hot_ops {
    /* Makes the place ready for the peer. Another value than STRATA_OK: it cannot, and the place is unusable. */
    int (*ready)(void *arg, uint32_t place, uint32_t peer);
    /* Lets the peer see its word; release, so that who has seen it finds the place ready. */
    void (*tell)(void *arg, uint32_t peer, uint32_t word);
    /* The order of polling (st_hot.order) has changed. May be NULL. */
    void (*ordered)(void *arg);
};
/* Has the peer look at its word although it sends nothing, by another way. STRATA_ERR_AGAIN: later. */
typedef int (*st_hot_nudge_fn)(void *arg, uint32_t place, uint32_t peer);

/* A place, as the user may read it. */
struct st_hot_place {
    uint32_t peer; /* who has it, or had it last; UNUSABLE: ST_HOT_NONE */
    uint8_t state; /* enum st_hot_state */
    bool nudged;   /* REVOKED: the peer has been nudged */
};

/* The receiver's side. Read-only for the user. */
struct st_hot {
    struct st_hot_place *places; /* n_places */
    uint32_t *order;             /* places to poll, the hottest first: n_order */
    uint32_t n_places;           /* entries of places */
    uint32_t n_order;            /* entries of order */
    uint32_t n_revoked; /* whose farewell is awaited: while there are some, st_hot_nudge is to be called now and then */
    uint32_t n_unusable;          /* places in this state */
    uint32_t generation;          /* of words */
    bool off;                     /* nothing is granted any more: a place was given up, or all are unusable */
    struct st_polling_set *set;   /* that decides */
    const struct st_hot_ops *ops; /* the user's */
    void *arg;                    /* their first argument */
};

/* Makes an object with config->max_members places for peers 0..n_peers-1. STRATA_ERR_NOMEM; STRATA_ERR_ARG: more than
 * ST_HOT_MOST. */
ST_API int st_hot_create(struct st_hot *hot, const struct st_polling_set_config *config, uint32_t n_peers,
                         const struct st_hot_ops *ops, void *arg);
/* Frees what it holds; one of zeros has nothing. */
ST_API void st_hot_destroy(struct st_hot *hot);
/* A message of the peer came by the shared way: it may get a place, or another may lose one to it. */
ST_API void st_hot_shared_arrival(struct st_hot *hot, uint32_t peer);
/* n messages came by the place. True: the order of polling has changed. */
static inline bool st_hot_arrivals(struct st_hot *hot, uint32_t place, uint32_t n)
{
    return st_polling_set_ring_arrival(hot->set, place, n);
}
/* Revokes all places that are granted, for a receiver that is about to sleep: peers that go on sending get places
 * again. */
ST_API void st_hot_revoke_all(struct st_hot *hot);
/* The place cannot serve its peer any longer: revokes it, and grants no place any more. */
ST_API void st_hot_give_up(struct st_hot *hot, uint32_t place);
/* Nudges the peers whose places were revoked, each once; `nudge` gets the user's `arg`. */
ST_API void st_hot_nudge(struct st_hot *hot, st_hot_nudge_fn nudge);
/* The peer's farewell has been read; it may say it without being asked. */
ST_API void st_hot_left(struct st_hot *hot, uint32_t place);
/* The peer has violated the protocol. */
ST_API void st_hot_broken(struct st_hot *hot, uint32_t place);
/* The place that a peer has, or had when it broke it; ST_HOT_NONE: none. */
ST_API uint32_t st_hot_place_of(const struct st_hot *hot, uint32_t peer);
/* Memory that it holds. */
ST_API size_t st_hot_bytes(const struct st_hot *hot);

/* The sender's side. */
struct st_hot_grant {
    uint32_t word; /* under which I use a place, or ST_HOT_NONE */
    uint32_t left; /* the last one that I gave back */
};

/* What a word asks of the sender. */
enum st_hot_turn {
    ST_HOT_STAY,  /* nothing: my place; or 0, or a place that I have left and whose farewell has not been read */
    ST_HOT_LEAVE, /* end the use of the place with a farewell; then grant->left = grant->word, grant->word = ST_HOT_NONE
                   */
    ST_HOT_TAKE   /* use the place that the word names (st_hot_word_place), once it has been checked */
};
/* The answer for the sender's word as it reads now. */
static inline enum st_hot_turn st_hot_turn(const struct st_hot_grant *grant, uint32_t word)
{
    if (word == grant->word)
        return ST_HOT_STAY;
    if (grant->word != ST_HOT_NONE)
        return ST_HOT_LEAVE;
    return word == 0 || word == grant->left ? ST_HOT_STAY : ST_HOT_TAKE;
}
/* The place that a word names; as the peer says, so to be checked. */
static inline uint32_t st_hot_word_place(uint32_t word)
{
    return (word & 0xffffu) - 1;
}

#ifdef __cplusplus
}
#endif
#endif

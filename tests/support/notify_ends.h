/* Both ends of puts with notice (strata/sdk/notify.h), for tests of them. Rank 0 receives: it exposes to each sender an
 * area of slots, which are filled in turn. A notice is the slot's number and how often it was filled. */
#ifndef TEST_SUPPORT_NOTIFY_ENDS_H
#define TEST_SUPPORT_NOTIFY_ENDS_H

#include <stdatomic.h>
#include <strata/sdk/notify.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/worker.h>
#include "support/world.h"

enum {
    NOTIFY_RANKS = 3,
    NOTIFY_MOST_RANKS = 8,
    NOTIFY_SLOTS = 16,
    NOTIFY_SLOT = 20000,
    NOTIFY_AREA = NOTIFY_SLOTS * NOTIFY_SLOT
};

/* What the receiver tells each sender. */
struct notify_card {
    uint64_t base;
    uint8_t key[ST_BTL_KEY_MAX];
};

struct notify_receiver {
    char *area[NOTIFY_MOST_RANKS]; /* by sender; NULL: not exposed */
    struct st_btl_reg reg[NOTIFY_MOST_RANKS];
    uint32_t filled[NOTIFY_MOST_RANKS][NOTIFY_SLOTS];
    _Atomic(uint32_t) got[NOTIFY_MOST_RANKS];
    /* Called for each notice before it is counted; may be NULL. */
    void (*look)(struct notify_receiver *in, int from, uint32_t slot, uint32_t turn);
};

struct notify_sender;
struct notify_op {
    struct st_notify n;
    struct notify_sender *s;
    bool under_way;
};

struct notify_sender {
    struct st_worker *worker;
    struct st_peer *peer;
    struct notify_card card;
    char *out; /* NOTIFY_AREA bytes, registered */
    struct st_btl_reg reg;
    struct notify_op *op;
    uint32_t under_way;
    uint32_t refused, failed; /* nothing taken; ended with STRATA_ERR_PEER */
};

/* ---- collective ---- */
void notify_join(struct tw_rank *r, struct notify_receiver *in);
void notify_expose(struct tw_rank *r, struct notify_receiver *in);  /* rank 0; meanwhile each sender opens */
void notify_conceal(struct tw_rank *r, struct notify_receiver *in); /* leaves, too */
void notify_open(struct tw_rank *r, struct notify_sender *s, uint32_t n_ops);
void notify_close(struct notify_sender *s); /* nothing is under way */

/* ---- rank 0 ---- */
void notify_look(struct notify_receiver *in, int from, uint32_t slot, uint32_t turn); /* checks all bytes */
/* All slots of each sender have been filled so often. */
void notify_await(struct tw_rank *r, struct notify_receiver *in, uint32_t turns);

/* ---- senders ---- */
/* STRATA_OK, 1, STRATA_ERR_AGAIN, STRATA_ERR_PEER. */
int notify_put(struct notify_sender *s, struct notify_op *op, uint32_t slot, uint32_t turn, uint32_t len);
void notify_turn(struct tw_rank *r, struct notify_sender *s, uint32_t turn); /* fills each slot; returns when done */
/* What is in a slot: its length, and the seed of its pattern. */
uint32_t notify_length(int from, uint32_t turn, uint32_t slot);
uint64_t notify_seed(int from, uint32_t turn, uint32_t slot);

/* The whole of a test, by all ranks: each slot filled so often; the receiver gives the slots of a turn back when
 * `seen`, which may be NULL, returns. */
void notify_turns(struct tw_rank *r, struct notify_receiver *in, uint32_t turns,
                  void (*seen)(struct notify_receiver *in));
/* Each rank sends a message to another one, and receives one; in n - 1 rounds to all. */
void notify_mingle(struct tw_rank *r, uint32_t round);

#endif

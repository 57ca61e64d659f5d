/* A collective under way. All with the worker's lock held, if nothing else is said.
 *
 * Calls of a communicator run one after the other: the next begins when the one before is complete. So a member that
 * sends of epoch e has all blocks of e - 1, each member has begun e - 1, and what it sent of e - 2 was consumed: two
 * generations of landing cells are enough. A bcast tells of the root alone: after one, a block waits until its receiver
 * is known to have begun the call before (slot_may_send). */
#ifndef COLL_ARRIVAL_OP_H
#define COLL_ARRIVAL_OP_H

#include <strata/sdk/notify.h>
#include "slot.h"

enum out_state { OUT_IDLE, OUT_MESSAGES, OUT_PUT, OUT_DONE };

/* A block that goes. */
struct out {
    struct op *op;
    int to;        /* member */
    uint8_t state; /* enum out_state */
    bool has_reg;
    bool by_messages;   /* it has begun to go by messages, and goes on so */
    uint8_t pieces;     /* of a bcast's block, that were put */
    uint32_t parts;     /* of a round's message that have begun to go: bit j + 1 for part j */
    uint64_t sent, end; /* bytes: what goes now */
    uint64_t gone;      /* of the whole */
    struct st_work work;
    struct st_notify notify;
    struct st_btl_reg reg; /* of the block, while it is put */
};

/* A block that comes. */
struct in {
    bool done; /* it is here */
    bool put;  /* the member may put it, and has not said that it will not */
    bool has_reg;
    uint8_t n_puts;     /* pieces that were put or may be; PIECES_MOST until it is known that some are not */
    uint16_t landed;    /* pieces that were put and are here, by bit */
    size_t here;        /* bytes of a bcast's block that have come without a gap, until it is done */
    struct st_btl *btl; /* of reg */
    struct st_btl_reg reg;
};

/* Of a block at most: a notice has room for so many numbers. */
enum { PIECES_MOST = 16 };

/* All blocks between two nodes, or the message of a round. */
struct crate {
    const char *from;
    char *to;
    size_t out, in; /* bytes */
    int out_round, in_round;
};

struct op {
    strata_coll_request_t head;
    struct slot *slot;
    struct st_node node;
    struct arrival_question question;   /* of the choice; nodes and skew when it begins */
    enum arrival_form form, round_form; /* chosen when it begins; in rounds that it has memory for */
    int root;                           /* of a bcast, or -1 */
    int source;                         /* of a bcast: who sends the block here, or -1 */
    bool relays;                        /* of a bcast: the block goes on from here */
    size_t piece;                       /* of a bcast by leaders: bytes of a piece; 0: it goes whole */
    size_t element, block;              /* bytes; where all blocks are alike */
    size_t *out_count, *out_offset, *in_count, *in_offset; /* where they differ: n elements each; or NULL */
    char nothing;                                          /* where empty blocks are; never written */
    bool same;                                             /* all members get the block at `from`, of same_bytes */
    size_t same_bytes;
    const char *from;
    char *to;
    strata_reduce_fn reduce; /* combine.c: of `parts`, or NULL */
    void *reduce_arg;
    size_t part_count, part; /* elements and bytes */
    char *parts;             /* n of them */
    unsigned char *have;     /* nodes of the tree that are combined and wait for their other half */
    void *result;            /* where the combination goes, or NULL */
    struct op *before;       /* the first half of this one, freed with it, or NULL */
    char *copy;              /* of the input in place, or NULL */
    const char *own_from;    /* the rest of the own block: where it is, and goes to */
    char *own_to;
    size_t own_left; /* bytes of it */
    size_t bytes;
    int outs_left, ins_left; /* not done */
    int busy;                /* puts under way and work queued */
    int cursor[2];           /* of a form that is not aware: distance of the next destination; of nodes' blocks */
    bool begun, ended;
    bool shm;             /* blocks up to `limit` go by the areas and leaders of nodes */
    bool posted;          /* this member's blocks are in the area */
    bool aware;           /* of arrival (choose.h) */
    uint64_t since;       /* clock at its beginning, ns; form auto alone looks at it */
    bool gathered;        /* of a leader: all blocks of its node are there */
    size_t limit, stride; /* bytes of a block; between blocks in the area */
    uint8_t node_waited;  /* of a leader that has gathered: longest `waited` of its node */
    int shm_left;         /* local members and other nodes whose blocks were not taken */
    struct crate *crate;  /* by rank of the leader, or of the member that a round's message goes to or comes from */
    bool rounds;          /* the call goes in rounds (rounds.h) */
    char *rows;           /* messages of rounds; NULL: the call cannot go so */
    int error;
    unsigned char *taken; /* by local members and leaders, at their rank: their blocks are here */
    struct in *in;
    struct out out[];
};

/* Makes one, copies what may not change. Without the lock. */
int op_make(struct slot *s, const strata_coll_t *c, struct op **out);
/* Frees one that was not appended. Without the lock. */
void op_discard(struct op *op);
/* Behind the others of the communicator. */
void op_append(struct op *op);
/* The call under way, or NULL. */
struct op *op_current(const struct slot *s);
/* Something has happened: completes what is complete, and begins what is next. */
void op_check(struct slot *s);
/* A round of progress where the slot is counted as active: the own block's next part, then as op_check. Events. */
int op_turn(struct slot *s);

/* What an entry's block is made of, where it is not one of the caller's; or NULL. */
static inline const struct crate *op_crate(const struct op *op, int m)
{
    if (m >= op->slot->n)
        return &op->crate[m - op->slot->n];
    return op->rounds ? &op->crate[m] : NULL;
}
static inline size_t op_out_bytes(const struct op *op, int m)
{
    const struct crate *c = op_crate(op, m);
    if (!c && op->same)
        return op->same_bytes;
    return c ? c->out : op->out_count ? op->out_count[m] * op->element : op->block;
}
static inline size_t op_in_bytes(const struct op *op, int m)
{
    const struct crate *c = op_crate(op, m);
    if (!c && op->root >= 0)
        return m == op->source ? op->block : 0;
    return c ? c->in : op->in_count ? op->in_count[m] * op->element : op->block;
}
static inline const char *op_out_at(const struct op *op, int m)
{
    const struct crate *c = op_crate(op, m);
    if (!c && op->same)
        return op->from;
    return c ? c->from : op->from + (op->out_offset ? op->out_offset[m] * op->element : (size_t)m * op->block);
}
static inline char *op_in_at(const struct op *op, int m)
{
    const struct crate *c = op_crate(op, m);
    if (!c && op->root >= 0)
        return op->to;
    return c ? c->to : op->to + (op->in_offset ? op->in_offset[m] * op->element : (size_t)m * op->block);
}

/* Whether the blocks of an entry have begun to move: those of nodes do when a leader has gathered. */
static inline bool op_moves(const struct op *op, int entry)
{
    return entry < op->slot->n || op->gathered;
}

/* kinds.c */
bool arrival_kind_does(strata_coll_kind_t kind);
/* Whether the call is an alltoallv and an allgatherv, one after the other. */
bool arrival_kind_in_two(const struct slot *s, const strata_coll_t *c);
/* Nodes and skew are known when the call begins. */
struct arrival_question arrival_kind_question(const struct slot *s, const strata_coll_t *c);
/* Says which blocks go where; STRATA_ERR_NOMEM. */
int arrival_kind_set(struct op *op, const strata_coll_t *c);
int arrival_kind_halves(struct op *first, struct op *second, const strata_coll_t *c);

/* combine.c: memory for n blocks of `count` elements; STRATA_ERR_NOMEM. */
int arrival_combine_make(struct op *op, const strata_coll_t *c, size_t count);
/* The member's block is there. */
void arrival_combine(struct op *op, int m);
/* Where the result will be, when those of all have come. */
const char *arrival_combined(const struct op *op);
/* A member's block is where it was to go. */
static inline void op_came(struct op *op, int m)
{
    if (op->reduce)
        arrival_combine(op, m);
}

/* route.c: the form of the call, and which entries have blocks of their own. */
void arrival_route(struct op *op);
/* Whether this member sends the block of a bcast to another. */
bool arrival_sends(const struct op *op, int m);
/* The member that sends the block of a bcast to member `m`: a leader of its way through the nodes, or, if `nodes` is
 * NULL, the root. -1: `m` is the root. */
int arrival_source(const struct nodes *nodes, int root, int m);

/* pieces.c: bytes of a piece of a block of `bytes`, the same at all members; `least` is the parameter. 0: it goes
 * whole.
 */
size_t arrival_piece(size_t bytes, size_t least);
/* A piece was put here, says a notice. False: that cannot be true. */
bool arrival_piece_landed(struct op *op, int m, unsigned number);
/* A part of a block has come by a message to its place. */
void arrival_part_came(struct op *op, int m, size_t at, size_t bytes);
/* The member puts no more than n pieces of its block: when those are here, nothing of it is put any more. */
void arrival_puts_end(struct op *op, int m, size_t n);
/* The part of a bcast's block that can go next to a member: o->sent to o->end. False: nothing. */
bool arrival_piece_range(struct op *op, int m, bool put);

/* shm.c: this member's blocks into its node's area, and what others have posted. */
void arrival_shm_progress(struct op *op);

/* rounds.c: memory of a call in rounds; STRATA_ERR_NOMEM. */
int arrival_rounds_make(struct op *op);
/* Its own blocks, and the entries that messages go to and come from. */
void arrival_rounds_begin(struct op *op);
/* A message is here: its blocks go on, or are where they were to go. */
void arrival_rounds_came(struct op *op, int m);
/* What can be sent next of a message; false: nothing. `whole`: not in parts. */
bool arrival_rounds_range(struct op *op, int m, bool whole, struct out *o);

/* out.c: sends what can be sent, in the order of the form. `base` is 0 for blocks between members, n for nodes'. */
void out_begin(struct op *op, int base);
/* Blocks may go there, now that an advert or the first word of this call has come from it, or a credit. */
void out_advert(struct op *op, int m);
/* What rounds allow to be sent by now. */
void out_rounds(struct op *op);
/* Of a block in pieces, to each member the next ones that are here. */
void out_pieces(struct op *op);
/* The call is over: gives back registrations of blocks that have not gone to their end. */
void out_end(struct op *op);

#endif

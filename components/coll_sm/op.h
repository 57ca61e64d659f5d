/* Operations. With the worker's lock held, if nothing else is said. */
#ifndef COLL_SM_OP_H
#define COLL_SM_OP_H

#include "slot.h"

struct op {
    strata_coll_request_t head;
    struct slot *slot;
    struct st_node node;
    strata_coll_t c;              /* its lists are copies */
    strata_coll_request_t *inner; /* in the next component */
    size_t bytes;                 /* of this memory */
    char *copy;                   /* of the input in place, where others read it; or NULL */
    size_t block;                 /* bytes of a block */
    size_t offset, chunk;         /* of the step in the block, bytes */
    bool posted;                  /* the step's input is there */
    bool second;                  /* allreduce: parts are gathered */
    bool leaving;                 /* all is done but that others may read this memory */
    bool read;                    /* blocks are read from the members' own memory */
    int left;                     /* members of which something is to be taken in this step */
    int from;                     /* member whose block was read in part, if `got` is not 0 */
    size_t got;                   /* bytes of it */
    size_t own;                   /* bytes of the own block that are where they go, of all steps */
    size_t room;                  /* bytes that may still be moved in this turn with the lock */
    double since;                 /* a read does not succeed since then; 0: none */
    unsigned char taken[];        /* by member */
};

/* Makes one; copies the lists. Without the lock. */
int cs_op_make(struct slot *s, const strata_coll_t *c, struct op **out);
/* Whether the areas do it: by what is the same at all members. */
bool cs_op_fits(const struct slot *s, const strata_coll_t *c);
/* Puts it behind the others that go by areas. */
void cs_op_append(struct op *op);
/* It is complete. It may be freed by another thread behind the lock. */
void cs_op_complete(struct op *op, int error, int failed);
/* Goes on with those of a communicator; returns events. */
int cs_op_progress(struct slot *s);
/* Whether the slot has something to do; keeps the worker asking. */
void cs_op_watch(struct slot *s);

/* step.c: prepares an operation that is the first now, and goes on with it. */
void cs_step_first(struct op *op);
/* Events; *complete. */
int cs_step_run(struct op *op, bool *complete);

/* Read, copied or combined in one turn, about a millisecond: the worker's lock is held, and nothing else moves. Parts
 * of a step that go by buffers are not divided further. */
enum { OP_TURN = 4 << 20 };

/* kinds.c: the step's input into this member's buffer. */
void cs_kind_produce(struct op *op);
/* Whether something is taken of a member; of this one: its own block, which no buffer brings. */
bool cs_kind_needs(const struct op *op, int m);
/* Takes what the member has posted, or the own block; false: not now, or in part. */
bool cs_kind_consume(struct op *op, int m);
/* All members have posted, and nothing was taken of one alone. */
bool cs_kind_of_all(const struct op *op);
void cs_kind_consume_all(struct op *op);

static inline size_t op_part(const struct op *op)
{
    size_t left = op->block - op->offset;
    return left < op->chunk ? left : op->chunk;
}

#endif

/* A list of operations (struct sm_op, single_copy.h) in the order in which they began. */
#ifndef SM_OP_LIST_H
#define SM_OP_LIST_H

struct sm_op;

struct sm_op_list {
    struct sm_op *first, *last;
};

#endif

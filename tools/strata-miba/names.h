/* Operations and transports: their names, and which go together. */
#ifndef MIBA_NAMES_H
#define MIBA_NAMES_H

#include <stdbool.h>
#include <infiniband/verbs.h>

enum miba_op {
    OP_NONE, /* a test that moves no data */
    OP_SEND,
    OP_WRITE,
    OP_READ,
    OP_WRITE_IMM,
    OP_FETCH_ADD,
    OP_COMPARE_SWAP,
    OPS
};
enum miba_transport { TRANSPORT_NONE, RC, UC, UD, TRANSPORTS };

#define BIT(n) (1u << (unsigned)(n))

const char *miba_op_name(enum miba_op op);               /* "send", "write", ... */
const char *miba_transport_name(enum miba_transport t);  /* "RC", ... */
enum miba_op miba_op_of(const char *name);               /* OPS: no such name */
enum miba_transport miba_transport_of(const char *name); /* TRANSPORTS: no such name */
bool miba_op_on(enum miba_op op, enum miba_transport t); /* UC has no reads and no atomics, UD sends only */
bool miba_op_takes_receive(enum miba_op op);             /* send, write with immediate */
bool miba_op_fetches(enum miba_op op);                   /* read and atomics: the other side does nothing */
bool miba_op_is_atomic(enum miba_op op);
enum ibv_wr_opcode miba_op_code(enum miba_op op);
enum ibv_qp_type miba_qp_type(enum miba_transport t);

#endif

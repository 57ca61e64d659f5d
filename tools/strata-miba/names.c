/* Operations and transports: their names, and which go together. */
#include "config.h"
#include "names.h"

#include <strings.h>

static const char *const op_names[OPS] = {"none", "send", "write", "read", "write_imm", "fetch_add", "compare_swap"};
static const char *const transport_names[TRANSPORTS] = {"none", "RC", "UC", "UD"};

const char *miba_op_name(enum miba_op op)
{
    return op_names[op];
}

const char *miba_transport_name(enum miba_transport t)
{
    return transport_names[t];
}

enum miba_op miba_op_of(const char *name)
{
    for (int op = 0; op < OPS; op++)
        if (strcasecmp(name, op_names[op]) == 0)
            return (enum miba_op)op;
    return OPS;
}

enum miba_transport miba_transport_of(const char *name)
{
    for (int t = 0; t < TRANSPORTS; t++)
        if (strcasecmp(name, transport_names[t]) == 0)
            return (enum miba_transport)t;
    return TRANSPORTS;
}

bool miba_op_on(enum miba_op op, enum miba_transport t)
{
    switch (t) {
    case RC:
        return op != OP_NONE;
    case UC:
        return op == OP_SEND || op == OP_WRITE || op == OP_WRITE_IMM;
    case UD:
        return op == OP_SEND;
    default:
        return op == OP_NONE;
    }
}

bool miba_op_takes_receive(enum miba_op op)
{
    return op == OP_SEND || op == OP_WRITE_IMM;
}

bool miba_op_fetches(enum miba_op op)
{
    return op == OP_READ || miba_op_is_atomic(op);
}

bool miba_op_is_atomic(enum miba_op op)
{
    return op == OP_FETCH_ADD || op == OP_COMPARE_SWAP;
}

enum ibv_wr_opcode miba_op_code(enum miba_op op)
{
    switch (op) {
    case OP_WRITE:
        return IBV_WR_RDMA_WRITE;
    case OP_READ:
        return IBV_WR_RDMA_READ;
    case OP_WRITE_IMM:
        return IBV_WR_RDMA_WRITE_WITH_IMM;
    case OP_FETCH_ADD:
        return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case OP_COMPARE_SWAP:
        return IBV_WR_ATOMIC_CMP_AND_SWP;
    default:
        return IBV_WR_SEND;
    }
}

enum ibv_qp_type miba_qp_type(enum miba_transport t)
{
    return t == UC ? IBV_QPT_UC : t == UD ? IBV_QPT_UD : IBV_QPT_RC;
}

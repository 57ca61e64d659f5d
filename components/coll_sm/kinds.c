/* What each kind of operation puts into its buffer and takes of the others. */
#define _GNU_SOURCE 1
#include "op.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include <strata/sdk/clock.h>

enum { READ_PATIENCE = 10 }; /* seconds: a member that has failed may be gone before its failure is known */

static char *kind_half(const struct op *op, int m)
{
    const struct slot *s = op->slot;
    return area_half(s->member[m].at, s->half, s->step);
}

static const char *kind_input(const struct op *op)
{
    const char *recv = op->c.recv;
    if (op->copy)
        return op->copy;
    if (op->c.kind == STRATA_BCAST)
        return recv;
    if (op->c.send != STRATA_IN_PLACE)
        return op->c.send;
    return op->c.kind == STRATA_ALLGATHER ? recv + (size_t)op->slot->me * op->block : recv;
}

static void kind_copy(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

static void kind_charge(struct op *op, size_t bytes)
{
    op->room -= bytes < op->room ? bytes : op->room;
}

/* The own block of an alltoall or allgather, up to the end of the step; false: in part. */
static bool kind_own(struct op *op)
{
    size_t me = (size_t)op->slot->me, from = op->c.kind == STRATA_ALLTOALL ? me * op->block : 0;
    size_t left = op->offset + op_part(op) - op->own, part = left < op->room ? left : op->room;
    kind_copy((char *)op->c.recv + me * op->block + op->own, kind_input(op) + from + op->own, part);
    kind_charge(op, part);
    op->own += part;
    return part == left;
}

static void kind_lend(struct op *op)
{
    struct slot *s = op->slot;
    s->own.at->lent[s->step & 1u] = (uint64_t)(uintptr_t)kind_input(op);
}

static void kind_produce_blocks(struct op *op)
{
    const struct slot *s = op->slot;
    const char *in = kind_input(op);
    char *half = kind_half(op, s->me);
    size_t part = op_part(op);
    if (op->c.kind == STRATA_ALLTOALL)
        for (int m = 0; m < s->n && part; m++)
            kind_copy(half + (size_t)m * op->chunk, in + (size_t)m * op->block + op->offset, m == s->me ? 0 : part);
    else
        kind_copy(half, in + op->offset, part);
    kind_charge(op, op->c.kind == STRATA_ALLTOALL ? part * (size_t)s->n : part);
}

void cs_kind_produce(struct op *op)
{
    const struct slot *s = op->slot;
    bool root = op->c.root == s->me;
    switch (op->c.kind) {
    case STRATA_BCAST:
        if (!root)
            return;
        break;
    case STRATA_REDUCE:
        if (root)
            return;
        break;
    case STRATA_ALLREDUCE:
        if (op->second) /* cs_kind_consume_all has put this member's part there */
            return;
        break;
    case STRATA_ALLGATHER:
    case STRATA_ALLTOALL:
        break;
    default: /* a barrier */
        return;
    }
    if (op->read)
        kind_lend(op);
    else
        kind_produce_blocks(op);
}

bool cs_kind_needs(const struct op *op, int m)
{
    if (m == op->slot->me)
        return (op->c.kind == STRATA_ALLGATHER || op->c.kind == STRATA_ALLTOALL) && op->c.send != STRATA_IN_PLACE;
    if (op->c.kind == STRATA_BCAST)
        return m == op->c.root;
    return op->c.kind != STRATA_REDUCE || op->slot->me == op->c.root;
}

bool cs_kind_of_all(const struct op *op)
{
    return op->c.kind == STRATA_REDUCE || (op->c.kind == STRATA_ALLREDUCE && !op->second);
}

/* ---- of one ---- */

/* 0, or an errno. */
static int kind_read_all(uint32_t pid, char *to, uint64_t from, size_t bytes)
{
    while (bytes > 0) {
        struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
        ssize_t n = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);
        if (n <= 0)
            return n < 0 ? errno : EFAULT;
        to += n;
        from += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* The member's memory cannot be read. A process that is gone may be one whose failure is not known yet. Any other
 * reason lasts: this member, which is alive and tells all others, ends the operation, since the owner waits for it. */
static void kind_unreadable(struct op *op, int m, int error)
{
    const struct slot *s = op->slot;
    double now = (double)st_now_ns() * 1e-9;
    op->since = op->since > 0 ? op->since : now;
    if (error == ESRCH && now - op->since <= READ_PATIENCE)
        return;
    st_log(s->sm->base.context, ST_LOG_ERROR, "coll_sm",
           "communicator %u: rank %d cannot read the memory of rank %d (process %u): %s; coll_sm_read_min sets the "
           "size of blocks that are read",
           (unsigned)s->base.group->comm->id, s->me, m, (unsigned)s->member[m].pid, strerror(error));
    st_coll_member_failed_locked(s->base.group, error == ESRCH ? m : s->me);
}

/* Whether the owner's call has ended, since a member has failed: the block that was read may have been overwritten
 * before. Then the call ends here for the same reason. */
static bool kind_withdrawn(const struct op *op, const struct member *p)
{
    const struct slot *s = op->slot;
    atomic_thread_fence(memory_order_acquire); /* the block was read before; pairs with op_end_all's */
    int32_t ended = atomic_load_explicit(&p->at->ended, memory_order_relaxed);
    if (ended <= 0 || ended > s->n)
        return false;
    st_coll_member_failed_locked(s->base.group, ended - 1);
    return true;
}

/* Reads a block where its owner has it; false: too many read there now, or it is not to be read, since its owner has
 * failed, or for another reason, which is a failure. Operations of the slot may have ended then. */
static bool kind_read(struct op *op, int m, char *to)
{
    struct slot *s = op->slot;
    struct member *p = &s->member[m];
    uint64_t from = p->at->lent[s->step & 1u];
    size_t left = op->block - op->got, part = left < op->room ? left : op->room;
    if (op->room == 0 || (op->got > 0 && op->from != m))
        return false;
    if (op->c.kind == STRATA_ALLTOALL)
        from += (uint64_t)s->me * op->block;
    bool turn = atomic_fetch_add_explicit(&p->at->readers, 1, memory_order_relaxed) < s->sm->config.readers;
    int error = !turn ? EAGAIN : kind_read_all(p->pid, to + op->got, from + op->got, part);
    atomic_fetch_sub_explicit(&p->at->readers, 1, memory_order_relaxed);
    if (turn && kind_withdrawn(op, p))
        return false;
    if (error == 0) {
        op->since = 0;
        op->from = m;
        op->got = part < left ? op->got + part : 0;
        kind_charge(op, part);
        s->sm->counted[COUNT_READS] += op->got == 0;
    } else if (turn) {
        kind_unreadable(op, m, error);
    }
    return error == 0 && op->got == 0;
}

static void kind_bounds(const struct op *op, int m, size_t *low, size_t *bytes)
{
    size_t n = (size_t)op->slot->n, elements = op_part(op) / op->c.element;
    *low = elements * (size_t)m / n * op->c.element;
    *bytes = elements * ((size_t)m + 1) / n * op->c.element - *low;
}

bool cs_kind_consume(struct op *op, int m)
{
    const struct slot *s = op->slot;
    char *to = op->c.recv;
    size_t low = 0, part = op->block - op->offset > 0 ? op_part(op) : 0;
    const char *from = kind_half(op, m);
    if (m == s->me)
        return kind_own(op);
    switch (op->c.kind) {
    case STRATA_BCAST:
        break;
    case STRATA_ALLREDUCE:
        kind_bounds(op, m, &low, &part);
        from += low;
        break;
    case STRATA_ALLGATHER:
        to += (size_t)m * op->block;
        break;
    case STRATA_ALLTOALL:
        to += (size_t)m * op->block;
        from += (size_t)s->me * op->chunk;
        break;
    default:
        return true;
    }
    if (op->read)
        return kind_read(op, m, to);
    kind_copy(to + op->offset + low, from, part);
    kind_charge(op, part);
    return true;
}

/* ---- of all ---- */

/* The blocks of all members at [low, low + bytes) of the step, combined in the order of ranks, into `to`. `own` is this
 * member's, which may be where `to` is. */
static void kind_combine(struct op *op, size_t low, size_t bytes, const char *own, char *to)
{
    const struct slot *s = op->slot;
    size_t count = bytes / op->c.element;
    if (count == 0)
        return;
    kind_charge(op, bytes * (size_t)s->n);
    for (int m = s->n - 1; m >= 0; m--) {
        const char *in = m == s->me ? own : kind_half(op, m) + low;
        if (m == s->n - 1)
            kind_copy(to, in, bytes);
        else
            op->c.reduce(op->c.reduce_arg, in, to, count);
    }
}

void cs_kind_consume_all(struct op *op)
{
    struct slot *s = op->slot;
    size_t low = 0, bytes = op_part(op);
    char *to = (char *)op->c.recv + op->offset;
    if (op->c.kind == STRATA_REDUCE) { /* the root's input is in no buffer: it may lie where the result goes */
        char *half = kind_half(op, s->me);
        kind_copy(half, kind_input(op) + op->offset, bytes);
        kind_combine(op, 0, bytes, half, to);
        return;
    }
    if (op->block > s->sm->config.direct_max) { /* this member's part, into the buffer of the next step: all are done
                                                   with that, since they have posted this one */
        kind_bounds(op, s->me, &low, &bytes);
        to = area_half(s->own.at, s->half, s->step + 1) + low;
        kind_combine(op, low, bytes, kind_half(op, s->me) + low, to);
        kind_copy((char *)op->c.recv + op->offset + low, to, bytes);
        return;
    }
    kind_combine(op, 0, bytes, kind_half(op, s->me), to);
}

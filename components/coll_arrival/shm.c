/* Shm_Direct and PAP_Shm_Direct (paper, 4.3). Phase 1: each member puts its blocks into the area of its node; its
 * leader waits for all of them. Phase 2: leaders exchange the blocks of whole nodes, Direct or PAP_Direct. Phase 3: the
 * leader sets the flag of a node when that node's blocks are in the area, PAP: one by one, else all when the last has
 * come; the members of the node take theirs by flag. Blocks within a node are taken where their sender has put them,
 * PAP: as soon as it has.
 *
 * In the area, gathered blocks are sorted by place of the receiver, then of the sender; scattered ones by node of the
 * sender, then place of the receiver, then of the sender. A block that is the same for all is there once, and may be so
 * much longer. Lengths there may be changed by others of the node at any time: each is read once, and cut to the
 * limit. */
#include <string.h>

#include "in.h"
#include "op.h"

static int shm_me(const struct op *op)
{
    return op->slot->base.group->comm->rank;
}

static size_t shm_length(const struct op *op, bool coming, int local, int member)
{
    const struct slot *s = op->slot;
    const uint32_t *row = node_lengths(s->nodes, s->n, s->call, coming, local);
    size_t length = *(const volatile uint32_t *)&row[member];
    return length < op->limit ? length : op->limit;
}

static size_t shm_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- phase 1 ---- */

/* Whether all members of the node have begun the call before, so that they do not read any more what lies in this
 * call's generation of the area. After a bcast some may not. */
static bool shm_is_free(const struct op *op)
{
    const struct slot *s = op->slot;
    for (int i = 0; i < s->nodes->n_local; i++)
        if (atomic_load_explicit(&node_line(s->nodes, i)->begun, memory_order_acquire) < s->call)
            return false;
    return true;
}

static void shm_post(struct op *op)
{
    struct slot *s = op->slot;
    struct nodes *nodes = s->nodes;
    int me = shm_me(op), local = node_local(nodes, me);
    uint32_t *going = node_lengths(nodes, s->n, s->call, false, local);
    uint32_t *coming = node_lengths(nodes, s->n, s->call, true, local);
    char *gather = node_gather(nodes, s->call);
    for (int m = 0; m < s->n; m++) {
        size_t out = op_out_bytes(op, m), in = op_in_bytes(op, m);
        going[m] = m == me || out > op->limit ? 0 : (uint32_t)out;
        coming[m] = m == me || in > op->limit ? 0 : (uint32_t)in;
        if (going[m] > 0 && !op->same)
            memcpy(gather + ((size_t)nodes->place[m] * (size_t)nodes->n_local + (size_t)local) * op->stride,
                   op_out_at(op, m), out);
    }
    if (op->same && op->same_bytes > 0 && op->same_bytes <= op->limit)
        memcpy(gather + (size_t)local * op->stride, op->from, op->same_bytes);
    memset(op->taken, 0, (size_t)s->n);
    op->posted = true;
    s->a->counted[COUNT_SHM_CALLS]++;
    node_line(nodes, local)->waited[s->call & 1u] = s->waited;
    atomic_store_explicit(&node_line(nodes, local)->posted, s->call + 1, memory_order_release);
}

static bool shm_posted(const struct op *op, int local)
{
    return atomic_load_explicit(&node_line(op->slot->nodes, local)->posted, memory_order_acquire) > op->slot->call;
}

static bool shm_all_posted(const struct op *op)
{
    for (int i = 0; i < op->slot->nodes->n_local; i++)
        if (!shm_posted(op, i))
            return false;
    return true;
}

/* Moves the blocks for another node together, where they differ in length. Returns their bytes. */
static size_t shm_pack(const struct op *op, int leader, char *at)
{
    const struct nodes *nodes = op->slot->nodes;
    size_t packed = 0, slot = 0;
    for (int i = 0; i < nodes->count[leader]; i++)
        for (int local = 0; local < nodes->n_local; local++, slot++) {
            size_t length = shm_length(op, false, local, nodes->order[nodes->place[leader] + i]);
            memmove(at + packed, at + slot * op->stride, length);
            packed += length;
        }
    return packed;
}

/* Bytes of a node's blocks for the first `n_local` members of this one. */
static size_t shm_coming(const struct op *op, int leader, int n_local)
{
    const struct nodes *nodes = op->slot->nodes;
    size_t bytes = 0;
    for (int local = 0; local < n_local; local++)
        for (int i = 0; i < nodes->count[leader]; i++)
            bytes += shm_length(op, true, local, nodes->order[nodes->place[leader] + i]);
    return bytes;
}

/* Blocks of an allgatherv, of which each goes to all nodes: copied together to where scattered blocks of this node
 * would be, since its members read them where they were gathered. Every member knows all lengths. Returns their bytes.
 */
static size_t shm_pack_same(const struct op *op, char *at)
{
    const struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    const char *gather = node_gather(nodes, s->call);
    size_t packed = 0;
    for (int local = 0; local < nodes->n_local; local++) {
        size_t length = op_in_bytes(op, nodes->order[nodes->place[nodes->leader] + local]);
        if (length > op->limit)
            continue;
        if (length > 0)
            memcpy(at + packed, gather + (size_t)local * op->stride, length);
        packed += length;
    }
    return packed;
}

static size_t shm_coming_same(const struct op *op, int leader)
{
    const struct nodes *nodes = op->slot->nodes;
    size_t bytes = 0;
    for (int i = 0; i < nodes->count[leader]; i++) {
        size_t length = op_in_bytes(op, nodes->order[nodes->place[leader] + i]);
        bytes += length <= op->limit ? length : 0;
    }
    return bytes;
}

/* ---- phase 2 ---- */

/* Where a node's blocks are scattered. */
static char *shm_scatter(const struct op *op, int leader)
{
    const struct nodes *nodes = op->slot->nodes;
    size_t receivers = op->same ? 1 : (size_t)nodes->n_local;
    return node_scatter(nodes, op->slot->call) + (size_t)nodes->place[leader] * receivers * op->stride;
}

static void shm_fill_crate(const struct op *op, int leader, struct crate *crate)
{
    const struct nodes *nodes = op->slot->nodes;
    size_t place = (size_t)nodes->place[leader], there = (size_t)nodes->count[leader];
    size_t here = (size_t)nodes->n_local, pairs = there * here;
    char *from = node_gather(nodes, op->slot->call) + (op->same ? 0 : place * here * op->stride);
    crate->out = op->out_count ? shm_pack(op, leader, from) : (op->same ? here : pairs) * op->block;
    crate->in = op->out_count ? shm_coming(op, leader, nodes->n_local) : (op->same ? there : pairs) * op->block;
    crate->from = from;
}

static void shm_exchange(struct op *op)
{
    struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    bool packs = op->same && op->out_count;
    char *packed = shm_scatter(op, nodes->leader);
    size_t bytes = packs ? shm_pack_same(op, packed) : 0;
    for (int m = s->n; m < s->n_all; m++) {
        int leader = m - s->n;
        struct crate *crate = &op->crate[leader];
        if (op->in[m].done)
            continue;
        if (packs)
            *crate = (struct crate){.from = packed, .out = bytes, .in = shm_coming_same(op, leader)};
        else
            shm_fill_crate(op, leader, crate);
        crate->to = shm_scatter(op, leader);
        s->a->counted[COUNT_CRATES]++;
    }
    for (int local = 0; local < nodes->n_local; local++)
        op->node_waited = arrival_longer(op->node_waited, node_line(nodes, local)->waited[s->call & 1u]);
    op->gathered = true;
    in_advertise(op, s->n);
    out_begin(op, s->n);
    in_take_cells(op, s->n);
}

/* ---- phase 3 ---- */

static void shm_set_flags(const struct op *op)
{
    const struct slot *s = op->slot;
    if (!op->aware && op->ins_left > 0)
        return;
    for (int m = s->n; m < s->n_all; m++)
        if (op->in[m].done && m - s->n != shm_me(op) && node_is_leader(s->nodes, m - s->n)) {
            *node_waited(s->nodes, s->n, s->call, m - s->n) = s->member[m].came[s->epoch & 1u].waited;
            atomic_store_explicit(node_flag(s->nodes, m - s->n), s->call + 1, memory_order_release);
        }
}

static bool shm_flagged(const struct op *op, int leader)
{
    return atomic_load_explicit(node_flag(op->slot->nodes, leader), memory_order_acquire) > op->slot->call;
}

static void shm_take_local(struct op *op, int from)
{
    const struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    int local = node_local(nodes, from), me = shm_me(op);
    size_t room = op_in_bytes(op, from), length = shm_length(op, false, local, me);
    if (room > op->limit)
        return;
    size_t first = op->same ? 0 : (size_t)nodes->place[me] * (size_t)nodes->n_local;
    size_t at = (first + (size_t)local) * op->stride;
    if (length != room)
        op->error = STRATA_ERR_TRUNCATE;
    if (room > 0)
        memcpy(op_in_at(op, from), node_gather(nodes, s->call) + at, shm_least(length, room));
    op_came(op, from);
}

static void shm_take_node(struct op *op, int leader)
{
    const struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    int me = node_local(nodes, shm_me(op));
    size_t place = (size_t)nodes->place[leader], count = (size_t)nodes->count[leader];
    const char *from = shm_scatter(op, leader);
    if (!op->same)
        from += op->out_count ? shm_coming(op, leader, me) : (size_t)me * count * op->block;
    for (size_t i = 0; i < count; i++) {
        int m = nodes->order[place + i];
        size_t length = op_in_bytes(op, m);
        if (length > op->limit)
            continue;
        if (length > 0)
            memcpy(op_in_at(op, m), from, length);
        from += length;
        op_came(op, m);
    }
}

/* What a member of the node, or another node, has told of its time in the call before. */
static void shm_take_waited(const struct op *op, int m, bool local)
{
    struct slot *s = op->slot;
    struct nodes *nodes = s->nodes;
    struct came *came = &s->member[m].came[s->epoch & 1u];
    uint8_t there =
        local ? node_line(nodes, node_local(nodes, m))->waited[s->call & 1u] : *node_waited(nodes, s->n, s->call, m);
    came->waited = arrival_longer(came->waited, there);
}

/* Takes all that is there; in the form that is not aware, when all is. */
static void shm_take(struct op *op)
{
    const struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    for (int turn = op->aware ? 1 : 0; turn < 2; turn++) {
        bool all = true;
        for (int k = 1; k < s->n; k++) {
            int m = (shm_me(op) + k) % s->n;
            bool local = node_is_local(nodes, m);
            if (op->taken[m] || (!local && !node_is_leader(nodes, m)))
                continue;
            bool there = local ? shm_posted(op, node_local(nodes, m)) : shm_flagged(op, m);
            all = all && there;
            if (turn == 0 || !there)
                continue;
            if (local)
                shm_take_local(op, m);
            else
                shm_take_node(op, m);
            shm_take_waited(op, m, local);
            op->taken[m] = 1;
            op->shm_left--;
        }
        if (!all)
            return;
    }
}

void arrival_shm_progress(struct op *op)
{
    bool leads = op->slot->nodes->leader == shm_me(op);
    if (!op->posted && !shm_is_free(op))
        return;
    if (!op->posted)
        shm_post(op);
    if (leads && !op->gathered && shm_all_posted(op))
        shm_exchange(op);
    if (leads && op->gathered)
        shm_set_flags(op);
    if (op->shm_left > 0)
        shm_take(op);
}

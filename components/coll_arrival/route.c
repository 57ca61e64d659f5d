/* The way of a call, chosen when it begins: its form, and which entries have blocks of their own. The block of a bcast
 * by leaders goes from the root to the members of its node and to the leaders of the others, and from these to the
 * members of theirs: from one node to another once, and within a node as blocks do there. */
#include "op.h"

static int route_me(const struct op *op)
{
    return op->slot->base.group->comm->rank;
}

int arrival_source(const struct nodes *nodes, int root, int m)
{
    if (m == root)
        return -1;
    int leader = nodes ? node_leader_of(nodes, m) : m;
    return leader == m || leader == node_leader_of(nodes, root) ? root : leader;
}

static const struct nodes *route_nodes(const struct op *op)
{
    const struct nodes *nodes = op->slot->nodes;
    return nodes && nodes->n_nodes > 0 && arrival_form_by_leaders(op->form) ? nodes : NULL;
}

bool arrival_sends(const struct op *op, int m)
{
    return arrival_source(route_nodes(op), op->root, m) == route_me(op);
}

static void route_bcast(struct op *op)
{
    const struct slot *s = op->slot;
    int me = route_me(op);
    op->source = arrival_source(route_nodes(op), op->root, me);
    for (int m = 0; m < s->n_all; m++) {
        bool sends = m < s->n && arrival_sends(op, m);
        op->out[m].state = sends ? OUT_IDLE : OUT_DONE;
        op->in[m].done = m != op->source;
        op->relays = op->relays || (sends && me != op->root);
    }
    if (op->relays)
        op->same_bytes = op->block;
    op->piece = route_nodes(op) ? arrival_piece(op->block, s->a->config.piece) : 0;
}

/* Blocks up to op->limit by the areas of nodes, and between their leaders. */
static void route_blocks(struct op *op)
{
    const struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    int me = route_me(op);
    op->shm = nodes && op->limit > 0 && (op->out_count || op->block <= op->limit);
    op->stride = op->out_count ? op->limit : op->block;
    op->shm_left = op->shm ? nodes->n_local - 1 + nodes->n_nodes - 1 : 0;
    for (int m = 0; m < s->n; m++) {
        if (m == me || (op->shm && op_out_bytes(op, m) <= op->limit))
            op->out[m].state = OUT_DONE;
        op->in[m].done = m == me || (op->shm && op_in_bytes(op, m) <= op->limit);
    }
    for (int m = s->n; m < s->n_all; m++) {
        int r = m - s->n;
        bool used = op->shm && nodes->leader == me && r != me && node_is_leader(nodes, r);
        op->out[m].state = used ? OUT_IDLE : OUT_DONE;
        op->in[m].done = !used;
    }
}

void arrival_route(struct op *op)
{
    const struct slot *s = op->slot;
    const struct nodes *nodes = s->nodes;
    const struct arrival_choice *choice = &s->a->choice;
    struct arrival_question *q = &op->question, calm;
    /* A block that is the same for all is once in an area, which has room for one to each member of it. */
    size_t agreed = nodes ? nodes->limit * (op->same ? (size_t)nodes->least : 1) : 0;
    q->nodes = nodes && nodes->n_nodes > 0 ? nodes->n_nodes : s->n;
    q->skew = s->skew;
    calm = *q;
    calm.skew = 0;
    op->form = arrival_choose(choice, q);
    op->aware = arrival_is_aware(op->form);
    if (op->root >= 0) {
        s->a->counted[COUNT_SKEWED] +=
            !arrival_form_by_leaders(op->form) && arrival_form_by_leaders(arrival_choose(choice, &calm));
        route_bcast(op);
        return;
    }
    op->limit = arrival_choose_limit(choice, q, agreed);
    if (op->limit == 0 && arrival_choose_limit(choice, &calm, agreed) > 0)
        s->a->counted[COUNT_SKEWED]++;
    route_blocks(op);
}

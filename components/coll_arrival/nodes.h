/* Members of a communicator by nodes, and the memory of one node (Qian and Afsahi, section 4.3). The leader of a node
 * is its first member. It has an area that the members of the node map: what they send lies in one half, sorted by the
 * node of the receiver, what other leaders have sent for them in the other. Each half has two generations, by the
 * parity of the call, for the reason for which cells have two (op.h). With the worker's lock held, if nothing else is
 * said. */
#ifndef COLL_ARRIVAL_NODES_H
#define COLL_ARRIVAL_NODES_H

#include <strata/sdk/atomic.h>
#include <strata/sdk/coll.h>
#include <strata/sdk/shared_map.h>

enum nodes_stage {
    NODES_NEW,   /* no call yet */
    NODES_CARDS, /* the allgather of cards is under way */
    NODES_VOTES, /* all know the nodes; whether all have mapped their node's area is being told */
    NODES_AGREED /* `limit` is known */
};

/* A member's card, sent to all others at the first call. */
struct node_card {
    uint64_t limit; /* of a leader: bytes of a block that its area has room for, 0: there is none */
    struct st_shared_name name;
    int32_t leader; /* rank in the communicator of the first member of the node */
    uint32_t pid;
};

/* One line of a member, written by it alone. */
struct node_line {
    _Alignas(64) ST_ATOMIC(uint64_t) posted; /* call whose blocks are there; pairs with the readers' acquire */
    ST_ATOMIC(uint64_t) begun; /* calls that it has begun: it reads no blocks of the one before the last */
    uint8_t waited[2];         /* by generation: class of its time in the call before (choose.h) */
};

/* Where things are in an area, bytes from its beginning. Rows have one entry for each member of the communicator. */
struct node_layout {
    size_t lines;   /* struct node_line of each local member */
    size_t flags;   /* row of ST_ATOMIC(uint64_t): call whose blocks a leader's node has sent; by the leader's rank */
    size_t waited;  /* row of uint8_t for each generation: `waited` of a leader's node */
    size_t lengths; /* uint32_t, by generation, going and coming, local member, and member */
    size_t gather, scatter;
    size_t half; /* of a generation of gather or scatter */
    size_t bytes;
};

struct nodes {
    int stage;    /* enum nodes_stage */
    bool outside; /* a thread maps the area outside the lock */
    strata_coll_request_t *cards_req;
    struct node_card *cards;
    size_t limit;                 /* longest block that goes by leaders, the same at all members; 0: none does */
    int n_votes;                  /* at member 0 */
    bool refused;                 /* one of them was against */
    int leader, n_local, n_nodes; /* n_nodes 0: not known */
    int least;                    /* members of the smallest node */
    int *place;                   /* of each member among all, sorted by node */
    int *order;                   /* members by place */
    int *count;                   /* members of the node, at the rank of its leader */
    struct node_layout layout;
    char *area; /* NULL: there is none */
    int fd;     /* of the leader's own area, or -1 */
    struct st_shared_mapping mapping;
};

/* For n members. NULL: no memory. */
struct nodes *arrival_nodes_make(int n);
/* Others keep what they have mapped. Without the lock. */
void arrival_nodes_free(struct nodes *nodes);
/* Sorts the members by the cards; false: the cards contradict each other. */
bool arrival_nodes_sort(struct nodes *nodes, int n, int me);
void arrival_node_layout(int n, int n_local, size_t limit, struct node_layout *out);
/* The longest block, up to `most`, for which an area is no larger than `bytes`; 0: none. */
size_t arrival_node_limit(int n, int n_local, size_t most, size_t bytes);
/* STRATA_OK, STRATA_ERR_NOMEM, STRATA_ERR_UNSUPPORTED. Sets area, fd, and the card's name. Without the lock. */
int arrival_node_area(struct nodes *nodes, size_t bytes, struct node_card *card);

static inline struct node_line *node_line(const struct nodes *nodes, int local)
{
    return (struct node_line *)(void *)(nodes->area + nodes->layout.lines) + local;
}
static inline ST_ATOMIC(uint64_t) * node_flag(const struct nodes *nodes, int leader)
{
    return (ST_ATOMIC(uint64_t) *)(void *)(nodes->area + nodes->layout.flags) + leader;
}
static inline uint8_t *node_waited(const struct nodes *nodes, int n, uint64_t call, int leader)
{
    return (uint8_t *)nodes->area + nodes->layout.waited + (call & 1u) * (size_t)n + (size_t)leader;
}
/* Row of lengths of what a local member sends, or receives. */
static inline uint32_t *node_lengths(const struct nodes *nodes, int n, uint64_t call, bool coming, int local)
{
    size_t row = ((call & 1u) * 2 + coming) * (size_t)nodes->n_local + (size_t)local;
    return (uint32_t *)(void *)(nodes->area + nodes->layout.lengths) + row * (size_t)n;
}
static inline char *node_gather(const struct nodes *nodes, uint64_t call)
{
    return nodes->area + nodes->layout.gather + (call & 1u) * nodes->layout.half;
}
static inline char *node_scatter(const struct nodes *nodes, uint64_t call)
{
    return nodes->area + nodes->layout.scatter + (call & 1u) * nodes->layout.half;
}
/* Place of a member of this node in its node. */
static inline int node_local(const struct nodes *nodes, int member)
{
    return nodes->place[member] - nodes->place[nodes->leader];
}
static inline int node_leader_of(const struct nodes *nodes, int member)
{
    return nodes->cards[member].leader;
}
static inline bool node_is_leader(const struct nodes *nodes, int member)
{
    return node_leader_of(nodes, member) == member;
}
/* Whether a member is on this node. */
static inline bool node_is_local(const struct nodes *nodes, int member)
{
    return node_leader_of(nodes, member) == nodes->leader;
}

#endif

/* Peers: of the job, and of a matching context. */
#ifndef OB1_PEER_H
#define OB1_PEER_H

#include <strata/sdk/pml.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/list.h>
#include <strata/sdk/worker.h>
#include "flow.h"
#include "table.h"

struct ob1;
struct ob1_comm;
struct ob1_msg;
struct ob1_tune;

/* A member of one matching context that has been spoken to or heard from: one cache line, all that the hot paths need.
 */
struct ob1_cpeer {
    int (*send)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                uint32_t len);
    struct st_btl_endpoint *ep;
    int64_t fast_limit; /* messages up to here go out at once; -1: not connected, something queued, failed. Those that
                           nobody waits for up to ob1_peer_window_limit */
    int32_t rank;       /* in the context */
    int32_t job_rank;
    /* Next to send, next expected. The lower 16 bits travel; the whole also counts messages. */
    uint32_t send_seq, recv_seq;
    uint64_t bytes_sent, bytes_received; /* payload of the messages that have their numbers */
    struct ob1_peer *peer;
};
_Static_assert(sizeof(struct ob1_cpeer) == 64, "the budget of a peer in a context");

/* The PML's part of a peer. */
struct ob1_peer {
    struct st_peer *shared;   /* the worker's part: paths, pending work */
    struct st_node first;     /* requests whose first fragment waits; they get their sequence numbers when they leave */
    struct st_node streams;   /* coming in from it */
    struct st_node throttled; /* in ob1.throttled while we have asked it to announce messages */
    union {
        struct ob1_cpeer *one;           /* n_members <= 1 */
        struct ob1_cpeer **many;         /* else */
    } member;                            /* its places in matching contexts */
    const struct st_component *heard_by; /* of the module that brought its first message, or NULL */
    struct st_pml_traffic *gone;         /* what went in contexts that have been freed, or NULL: nothing */
    const struct ob1_table *table;       /* of its path, shared with other peers; NULL: no memory for one */
    uint32_t n_members;
    uint32_t eager_limit; /* of paths[0] or the lane, the parameter applied */
    uint32_t stream_limit;
    uint32_t zcopy_min; /* UINT32_MAX: never */
    uint32_t alone_min; /* UINT32_MAX: never */
    uint32_t next_stream;
    uint16_t lost_caps; /* what its paths turned out not to be able to do */
    uint16_t coalesce;  /* of paths[0], the parameter applied */
    bool announce;      /* it has asked us to */
    /* OB1_THROTTLE may overtake one another: numbers of the last one sent and of the newest one received. */
    uint8_t throttle_sent, throttle_received;
    struct ob1_flow flow;
};

/* peer.c */
int ob1_peer_find(struct ob1 *pml, int job_rank, struct ob1_peer **out); /* made if need be, not connected */
/* The PML's part of a peer, or NULL. */
ST_INLINE struct ob1_peer *ob1_peer_of(const struct st_peer *shared)
{
    return shared->client[ST_AM_PML];
}
void ob1_peer_changed(void *arg, struct st_peer *shared); /* struct st_client.peer_changed */
/* The place of the peer in one of its contexts; i < n_members. */
ST_INLINE struct ob1_cpeer *ob1_peer_member(const struct ob1_peer *peer, uint32_t i)
{
    return peer->n_members == 1 ? peer->member.one : peer->member.many[i];
}
void ob1_peer_remove_member(struct ob1_peer *peer, const struct ob1_cpeer *p);
int ob1_cpeer_find(struct ob1_comm *c, int rank, struct ob1_cpeer **out); /* made if need be */
void ob1_peer_fast(struct ob1_peer *peer); /* sets fast_limit of its cpeers to what is true now */
/* Its paths have turned out not to be able to do this. */
void ob1_peer_lost(struct ob1 *pml, struct ob1_peer *peer, uint32_t caps);
/* The tuner of its path, shared with other peers; NULL: nothing is tuned. */
ST_INLINE struct ob1_tune *ob1_peer_tune(const struct ob1_peer *peer)
{
    return peer->table ? peer->table->tune : NULL;
}
/* Longest message in one fragment whose data is copied. */
ST_INLINE int64_t ob1_peer_window_limit(const struct ob1_peer *peer)
{
    int64_t limit = peer->eager_limit < peer->zcopy_min ? peer->eager_limit : peer->zcopy_min - 1;

    /* Tuned: longer ones may be announced. */
    return limit >= peer->alone_min && ob1_peer_tune(peer) ? (int64_t)peer->alone_min - 1 : limit;
}
/* The path by that module, or ST_NO_PATH. */
uint8_t ob1_peer_path_of(const struct ob1_peer *peer, const struct st_btl *btl);
void ob1_peers_destroy(struct ob1 *pml);

/* sequence.c */
/* Keeps a message that is ahead of its turn. STRATA_ERR_PROTOCOL: it is stale. */
int ob1_held_insert(struct ob1_comm *c, const struct ob1_cpeer *p, uint16_t seq, struct ob1_msg *msg);
struct ob1_msg *ob1_held_next(struct ob1_comm *c, struct ob1_cpeer *p); /* the one whose turn it is */
void ob1_held_drop(struct ob1 *pml, struct ob1_comm *c);                /* all of all members */

/* failure.c */
void ob1_peer_failed(void *arg, struct st_peer *shared); /* struct st_client.peer_failed */

#endif

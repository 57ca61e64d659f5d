/* Peers as the worker keeps them for all its clients: paths, pending work, and one pointer for each client's own data.
 * A peer is made at the first contact in either direction and connected at the first send to it; a rank without contact
 * costs at most 8 bytes. All functions with the lock held.
 *
 * Order. Active messages of one client to one peer arrive once each, in any order, as long as one path works; a client
 * that needs order numbers a fragment when it is accepted. Puts and gets belong to one path: when it is lost they end
 * with STRATA_ERR_PEER, and the client repeats them over another path (st_worker_path_lost). */
#ifndef STRATA_SDK_PEER_H
#define STRATA_SDK_PEER_H

#include <strata/sdk/bml.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/list.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_worker;
struct st_lane;
struct st_work;

/* No path of a peer works now. */
#define ST_NO_PATH 0xffu

/* Queues of a peer's pending work, in the order in which progress runs them. First fragments of a client run between
 * ST_WORK_CONTROL and ST_WORK_REST (struct st_client.firsts). */
enum st_work_queue { ST_WORK_CONTROL, ST_WORK_REST, ST_WORK_BULK, ST_WORK_QUEUES };

/* Result of st_work_ops.run: the work has made progress and is not finished. */
#define ST_WORK_MORE 1

/* Functions of pending work; the table must remain valid. */
struct st_work_ops {
    enum st_am am; /* of the client whose `arg` the functions get */
    /* Continues the work. STRATA_OK: finished (the object may be freed). STRATA_ERR_AGAIN: its path is busy; other work
     * of the same path and kind is not tried in this round. ST_WORK_MORE. No other value: run handles errors itself. */
    int (*run)(void *arg, struct st_work *work);
    /* The peer has failed with rc: the work is no longer queued and belongs to the client again. */
    void (*drop)(void *arg, struct st_work *work, int rc);
};

/* Work that got STRATA_ERR_AGAIN or is done in several rounds; part of the client's own object. */
struct st_work {
    struct st_node node;           /* in the queue */
    const struct st_work_ops *ops; /* the client's */
    uint8_t path;                  /* that it uses */
    bool rdma;                     /* gets or puts, which may proceed where a path is full for sends */
};

/* A peer. Read-only for clients except for their own entry of `client`. */
struct st_peer {
    struct st_bml_peer *bml;             /* its paths; NULL until the first send to it */
    struct st_lane *lane;                /* NULL while neither side sends by one */
    void *client[ST_AM_CLIENTS];         /* by enum st_am: that client's data about the peer, or NULL */
    struct st_node work[ST_WORK_QUEUES]; /* struct st_work */
    struct st_node pending;              /* in the worker's list while is_pending */
    int32_t rank;                        /* job rank */
    int32_t failed;                      /* STRATA_OK, or the error of all further operations */
    bool is_pending;                     /* there is work, first fragments included */
    bool by_lane;                        /* all active messages to it are kept and sent by its lane */
    uint8_t firsts;                      /* bit of each client (1 << am) that has first fragments waiting */
};

/* Returns the peer of a rank; makes it if necessary, without a connection. STRATA_ERR_NOMEM. */
ST_API int st_worker_peer(struct st_worker *w, int rank, struct st_peer **out);
/* Returns the peer if there has been contact, else NULL. */
ST_API struct st_peer *st_worker_peer_known(const struct st_worker *w, int rank);
/* Returns the lowest rank >= from with contact, or -1. */
ST_API int64_t st_worker_peer_next(const struct st_worker *w, int64_t from);
/* Connects the peer, if it is not connected: afterwards `bml` has at least one path. The clients are notified
 * (peer_changed). STRATA_ERR_AGAIN, STRATA_ERR_UNREACHABLE, STRATA_ERR_NOMEM, or peer->failed. */
ST_API int st_worker_connect(struct st_worker *w, struct st_peer *peer);

/* Queues work; it runs in the next round, or is dropped there when the peer has failed. */
ST_API void st_worker_queue(struct st_worker *w, struct st_peer *peer, enum st_work_queue queue, struct st_work *work);
/* The client `am` has first fragments for the peer: its `firsts` is called in each round until it clears its bit. */
ST_API void st_worker_firsts(struct st_worker *w, struct st_peer *peer, enum st_am am);

/* For an operation over the path that has failed: true if it may be repeated over another path, or later. */
ST_API bool st_worker_path_lost(struct st_peer *peer, uint8_t path);

/* st_peer_way and st_peer_path_up of a peer with a lane. */
ST_API struct st_btl_endpoint *st_lane_way(const struct st_peer *peer, uint8_t path);
/* As st_lane_way. */
ST_API uint8_t st_lane_path_up(const struct st_peer *peer, uint8_t path);

/* The endpoint of a connected peer's path, for put, get and registration. */
static inline struct st_btl_endpoint *st_peer_path(const struct st_peer *peer, uint8_t path)
{
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a client connects a peer before it moves data
    return peer->bml->paths[path < peer->bml->n_paths ? path : 0].ep;
}

/* The endpoint for active messages that are meant for the path: the path's own, or the lane's. */
static inline struct st_btl_endpoint *st_peer_way(const struct st_peer *peer, uint8_t path)
{
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as above
    return ST_LIKELY(!peer->by_lane) ? peer->bml->paths[0].ep : st_lane_way(peer, path);
}

/* The path itself when it works or is the only one, else the first that works, else ST_NO_PATH. */
static inline uint8_t st_peer_path_up(const struct st_peer *peer, uint8_t path)
{
    return ST_LIKELY(!peer->by_lane) ? 0 : st_lane_path_up(peer, path);
}

#ifdef __cplusplus
}
#endif
#endif

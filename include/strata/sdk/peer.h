/* Peers as the worker keeps them for all its clients: the paths to them, the work that waits for them, and what each
 * client knows of them. A peer is made at the first contact in either direction and connected when somebody sends; a
 * rank without contact costs at most 8 bytes. All functions with the lock held.
 *
 * Order. Active messages of one client to one peer arrive once each, in any order, as long as one path works; a client
 * numbers what has to be in order when a fragment is taken. Puts and gets belong to one path: when that is lost they
 * end with STRATA_ERR_PEER, and the client does them again by another one (st_worker_path_lost). */
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

/* `run` of a piece of work: it has made progress and has more to do. */
#define ST_WORK_MORE 1

/* What is done with pending work; a table that stays. */
struct st_work_ops {
    enum st_am am; /* of the client whose `arg` the functions get */
    /* STRATA_OK: finished (the object may be gone). STRATA_ERR_AGAIN: its path is busy; other work of the same path and
     * kind is not tried in this round. ST_WORK_MORE. Never an error: that has been dealt with. */
    int (*run)(void *arg, struct st_work *work);
    /* The peer has failed with rc: the work is out of the queue and the client's again. */
    void (*drop)(void *arg, struct st_work *work, int rc);
};

/* Work that met STRATA_ERR_AGAIN or takes turns; part of the client's own object. */
struct st_work {
    struct st_node node;           /* in the queue */
    const struct st_work_ops *ops; /* the client's */
    uint8_t path;                  /* that it goes by */
    bool rdma;                     /* gets or puts, which may proceed where a path is full for sends */
};

/* A peer. Read-only for clients but for their own entry of `client`. */
struct st_peer {
    struct st_bml_peer *bml;             /* its paths; NULL until somebody sends to it */
    struct st_lane *lane;                /* NULL while neither side sends by one */
    void *client[ST_AM_CLIENTS];         /* by enum st_am: what that client keeps of it, or NULL */
    struct st_node work[ST_WORK_QUEUES]; /* struct st_work */
    struct st_node pending;              /* in the worker's list while is_pending */
    int32_t rank;                        /* job rank */
    int32_t failed;                      /* STRATA_OK, or the error of everything from now on */
    bool is_pending;                     /* there is work, first fragments included */
    bool by_lane;                        /* all active messages to it are kept and go by its lane */
    uint8_t firsts;                      /* bit of each client (1 << am) that has first fragments waiting */
};

/* The peer of a rank, made if need be, not connected. STRATA_ERR_NOMEM. */
ST_API int st_worker_peer(struct st_worker *w, int rank, struct st_peer **out);
/* The peer if there has been contact, else NULL. */
ST_API struct st_peer *st_worker_peer_known(const struct st_worker *w, int rank);
/* The lowest rank >= from with contact, or -1. */
ST_API int64_t st_worker_peer_next(const struct st_worker *w, int64_t from);
/* Connects it, if it is not: afterwards `bml` has at least one path. The clients are told (peer_changed).
 * STRATA_ERR_AGAIN, STRATA_ERR_UNREACHABLE, STRATA_ERR_NOMEM, or what it has failed with. */
ST_API int st_worker_connect(struct st_worker *w, struct st_peer *peer);

/* Queues work; it runs in the next round, or is dropped there when the peer has failed. */
ST_API void st_worker_queue(struct st_worker *w, struct st_peer *peer, enum st_work_queue queue, struct st_work *work);
/* The client `am` has first fragments for the peer: its `firsts` is called in each round until it clears its bit. */
ST_API void st_worker_firsts(struct st_worker *w, struct st_peer *peer, enum st_am am);

/* An operation over the path has failed: true if it may be repeated over another path, or later. */
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

/* The endpoint to send active messages by that are meant for the path: the path's own, or the lane's. */
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

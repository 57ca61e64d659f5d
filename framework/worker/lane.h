/* A lane: the way to a peer with several paths, for the active messages of all clients. Every active message carries a
 * number of its own and is kept until the peer has said that it arrived; when a path fails, what was not acknowledged
 * goes again over another one, and what comes twice is dropped. So for the clients nothing is ever lost or delivered
 * twice while one path works. Peers with one path have no lane and pay nothing, unless path_keep or the transport asks
 * for it.
 * docs/design/lanes.md says why this is sound.
 */
#ifndef ST_WORKER_LANE_H
#define ST_WORKER_LANE_H

#include "framework/worker/worker.h"

/* What travels. */
enum {
    LANE_F_DIVERTED = 1u << 0, /* not by the path that it was meant for */
    LANE_F_AGAIN = 1u << 1,    /* send what we have not said we have again */
    LANE_F_GAVE_UP = 1u << 2,  /* for the sender the receiver has failed; all else is 0 */
    LANE_F_HEARD = 1u << 3     /* the word `word` about `lost` has come */
};
#define LANE_WORD 0xffu
struct lane_head {
    uint8_t kind;  /* enum st_am of the message in the payload, its header first; LANE_WORD: none, only what follows */
    uint8_t flags; /* LANE_F_* */
    uint8_t hdr_len; /* of the message */
    uint8_t word;    /* with lost: number of this failure */
    uint32_t seq;    /* of the sender's lane */
    uint32_t ack;    /* all of the receiver's before this one have arrived */
    uint32_t lost;   /* with LANE_F_AGAIN or _HEARD: the path that has failed, as both ends name it; 0: unknown */
};
_Static_assert(sizeof(struct lane_head) == 16, "no padding");

#define LANE_WINDOW 512u       /* messages not acknowledged; a power of two */
#define LANE_BYTES  (4u << 20) /* and their bytes */
#define LANE_CAME   256u
/* Parts of long messages leave an eighth of both to messages. */
#define LANE_BULK_WINDOW (LANE_WINDOW - LANE_WINDOW / 8)
#define LANE_BULK_BYTES  (LANE_BYTES - LANE_BYTES / 8)

enum lane_way_state {
    LANE_WAY_UP,
    LANE_WAY_DOWN,
    LANE_WAY_TRIED /* connected anew; UP when something could be sent */
};

/* One path as the clients see it: an endpoint of the lane's own module, whose sends are numbered. */
struct lane_way {
    struct st_btl_endpoint ep;
    struct st_lane *lane;
    uint8_t state; /* enum lane_way_state */
    bool heard;    /* that it is down was the peer's word */
    bool gone;     /* the transport says that it will never work again */
    uint8_t word;  /* number of its last failure at our end, and of the last one that the peer spoke of */
    uint8_t heard_word;
    uint64_t retry_ns;
};

/* Of a path as a way. ST_BTL_CROWDED makes a client look at the path itself, which reports bursts. */
static inline uint32_t lane_caps(const struct st_btl_endpoint *path)
{
    return path->caps | ST_BTL_CROWDED;
}

/* A frame's head, copied: its sender may be able to change it. False: it is too short. */
static inline bool lane_copy_head(const struct st_frag *frag, struct lane_head *h)
{
    if (frag->hdr_len < sizeof(*h))
        return false;
    __builtin_memcpy(h, frag->hdr, sizeof(*h));
    return true;
}

/* A message that may have to be sent again. */
struct lane_kept {
    uint32_t seq, size;
    uint8_t am; /* enum st_am */
    uint8_t hdr_len;
    bool bulk;                /* a part of a long message (st_btl_hints.send_bulk) */
    _Alignas(8) char bytes[]; /* header, payload */
};

#define LANE_SPARE_BYTES (4u << 20u) /* of unused memory that stay at most: as much as a lane keeps */

/* A kept message of many bytes begins 32 bytes behind a multiple of 64: where it lies in a frame of btl_tcp, behind
 * that one's header and the lane's, so that the kernel's copy does not collide (st_copy_collides). */
#define LANE_ALIGN 4096u
#define LANE_SKEW  (128u + 32u - (uint32_t)offsetof(struct lane_kept, bytes))

/* Memory of a kept message, sizeof included; its `size` is to be true when it is given back. */
static inline struct lane_kept *lane_keep_get(struct worker *w, size_t bytes)
{
    return st_block_get(&w->lane_spare, bytes);
}
static inline void lane_keep_put(struct worker *w, struct lane_kept *k)
{
    st_block_put(&w->lane_spare, k, sizeof(*k) + k->size);
}

struct st_lane {
    struct worker *w;
    struct st_peer *peer;
    struct st_btl btl;     /* what the ways say of themselves: the least of all paths */
    struct st_node mended; /* in worker.mending while a way is not up, or the peer is to be refused */
    uint32_t n_ways;       /* 0: not connected; that we send by it is for the peer's by_lane to say */
    struct lane_way way[ST_BML_MAX_PATHS];

    /* Sending: [oldest, next) are kept, of which [again, again_end) are to be sent again. */
    struct lane_kept *kept[LANE_WINDOW];
    uint32_t oldest, next, again, again_end;
    struct lane_share {
        uint32_t n;
        size_t bytes;
    } kept_of[ST_AM_CLIENTS]; /* of those kept, by client */

    /* Receiving: all before `expected` are here, and those whose bit is set. */
    uint32_t expected;
    uint64_t seen[LANE_WINDOW / 64];
    uint16_t came[LANE_WINDOW]; /* of those whose bit is set: their length in units of LANE_CAME bytes, rounded up */
    uint32_t told;              /* `expected` when we last said it */
    size_t untold_bytes; /* of those before `expected` received since; what is behind a gap counts when that closes */

    uint64_t n_failed;    /* paths lost */
    uint64_t stranded_ns; /* since when no way is up, later by the time without looks; 0: one is */
    uint64_t refuse_end_ns;
    uint8_t refuse_ways;  /* bits: by which the peer, which has failed, was not told so yet */
    uint8_t failed_ways;  /* bits: news, not dealt with yet */
    uint8_t tell_ways;    /* bits: failed, of which the peer is to be told */
    uint8_t unheard_ways; /* bits: it was told of, and did not say yet that it heard */
    uint8_t answer_ways;  /* bits: its word has come, and it is to be told so */
    bool ack_due;         /* to be said even if nothing else goes there */
    bool ask;             /* the peer is to send again */
    bool await_word;      /* what goes again waits for a frame of the peer, which says what has arrived */
    char reason[128];     /* why a way failed last */
};

/* Whether what goes by the only path is kept, since the module connects it anew. */
static inline bool lane_keeps(const struct worker *w, const struct st_btl *btl)
{
    return (btl->caps & ST_BTL_MENDS) && (w->head.paths.keep || (btl->caps & ST_BTL_KEEP));
}
/* Connected: makes the lane when there is more than one path, or what goes by the only one is kept. */
int lane_connect(struct worker *w, struct st_peer *peer);
void lane_destroy(struct worker *w, struct st_peer *peer);
/* The lane of a peer that sends by one. NULL: no memory. */
struct st_lane *lane_get(struct worker *w, struct st_peer *peer);

/* lane_send.c */
int lane_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
              uint32_t len);
int lane_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                      const struct st_payload *payload);
int lane_send_bulk(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                   const struct st_payload *payload);
/* One kept message over `way`, or where that is not up over another; STRATA_ERR_AGAIN when none is. */
int lane_put_on(struct st_lane *lane, uint32_t way, struct lane_kept *k, uint8_t flags);
/* Only what we have, with flags, over one way whatever its state. */
int lane_tell(struct st_lane *lane, uint32_t way, uint8_t flags, uint32_t lost, uint8_t word);
/* lane_refuse.c: the peer has failed for us and is to be told, by each way, for paths.wait_ms at most. */
void lane_refuse_begin(struct st_lane *lane, uint64_t now);
bool lane_refuse(struct st_lane *lane, uint64_t now); /* false: all is said */
/* It is heard from all the same: the word was lost, or its transport brings what it sent before. */
void lane_refuse_answer(struct st_peer *peer, const struct st_frag *frag);
void lane_acked(struct st_lane *lane, uint32_t ack);
/* The way itself when it is up, else the first that is, else ST_NO_PATH. */
uint32_t lane_up(const struct st_lane *lane, uint32_t way);

/* lane_recv.c */
void lane_take(void *arg, const struct st_frag *frag); /* st_deliver_fn of ST_AM_LANE; arg: the worker */

/* lane_mend.c */
/* An endpoint's connection is lost. False: it was all that there is to the peer. */
bool lane_path_failed(struct worker *w, struct st_btl_endpoint *ep, const char *reason);
/* How both ends name a way: by its component and the place of its module among those of the component. */
uint32_t lane_name_of(const struct st_lane *lane, uint32_t way);
/* The peer says that the way of this name has failed, in a frame that came by module `by`, or that it has heard so from
 * us. */
void lane_peer_lost(struct st_lane *lane, const struct st_btl *by, uint32_t name, uint8_t word);
void lane_peer_heard(struct st_lane *lane, uint32_t name, uint8_t word);
/* A way does not work. */
void lane_way_down(struct st_lane *lane, uint32_t way, const char *reason);
void lane_wake(struct st_lane *lane);          /* pump is to be called */
bool lane_pending(const struct st_lane *lane); /* pump has something to do */
int lane_pump(struct st_lane *lane);           /* failures, what goes again, acknowledgements; events */
void lanes_mend(struct worker *w);             /* tries paths that failed again, now and then */
void lanes_mend_soon(struct worker *w);        /* the next lanes_mend looks at them, not only one of many */
void lane_peer_failed(struct st_lane *lane);   /* nothing more is to be done for it */

#endif

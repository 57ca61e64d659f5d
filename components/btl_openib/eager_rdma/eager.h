/* The eager RDMA channel: short messages of hot peers go by RDMA writes into a ring of slots at the receiver.
 * docs/design/eager-rdma.md. Paper: "High Performance RDMA-Based MPI Implementation over InfiniBand", sections 3, 4. */
#ifndef IB_EAGER_H
#define IB_EAGER_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <strata/sdk/hot_peers.h>
#include <strata/sdk/peer_ranges.h>
#include <strata/sdk/shared_file.h>
#include "data/send.h"
#include "eager_rdma/ring_order.h"
#include "eager_rdma/slot.h"
#include "peer/peer.h"

struct ib_module;
struct ib_taking;

/* Registered memory of a ring. */
struct ib_ring_memory {
    struct st_shared_piece piece; /* fd -1: the pool's private memory */
    struct ibv_mr *mr;            /* NULL: there is none */
};

/* A ring here, in a place of the polling set; a peer writes to it. As long as `plan` is not 0, short messages are taken
 * by comparing one word with `next`, and are only counted in `taken`; ib_ring_settle does the rest for all of them. */
struct ib_ring_in {
    /* One cache line has all that a poll of an idle ring reads of it: with many rings, each line counts. */
    const char *flag;     /* last byte of the next slot */
    uint64_t next;        /* with a plan: ib_footer_word of the next message */
    size_t size;          /* bytes of a slot */
    uint32_t plan;        /* messages of one line that may be taken before anything else is looked at */
    uint32_t taken;       /* messages of one line: delivered, not settled */
    uint8_t expect;       /* value at `flag` when the next message is there */
    uint8_t detect;       /* enum ib_detect */
    uint8_t window;       /* freed slots that a message of its own returns */
    bool unsaid;          /* the peer was not told of the grant, or of its end, yet */
    uint32_t most;        /* bytes of header and data that a message has at most */
    struct st_frag frag;  /* of the next one */
    uint32_t arrivals;    /* settled messages less those that were reported to the polling set */
    uint32_t place;       /* index */
    const char *bottom;   /* `flag` behind the last slot, where slot 0 comes next */
    struct ib_peer *peer; /* that writes to it; NULL: nobody */
    struct ib_ring_order order;
    uint32_t word; /* under which it was granted: sdk/hot_peers.h */
    bool revoked;  /* the peer is to end its use */
    bool quiet;    /* nothing came lately: it is not looked at in every round */
    uint8_t idle;  /* reports in a row without a message */
    uint8_t first; /* slot of the first message */
    struct ib_ring_memory memory;
    struct st_node kept; /* messages that clients keep in their slots, oldest first */
    uint64_t unused[7];  /* fill the last line */
};
_Static_assert(offsetof(struct ib_ring_in, expect) < IB_LINE,
               "a poll reads one line of a ring that begins with a line");
_Static_assert(sizeof(struct ib_ring_in) % IB_LINE == 0, "each ring of an array begins with a line");

/* Whether messages to a peer are a burst, which had better go together: data/crowd.c. */
struct ib_burst {
    uint32_t at;    /* ib_qp.posted at the next look */
    uint32_t heard; /* messages of the peer until the last look */
    uint32_t each;  /* posts between two looks: more while these are of no use; beside: since messages went together */
    bool joined;    /* messages have gone together since the last look */
    bool beside;    /* windows: all messages go by send and receive, and each is a look */
    uint8_t alone;  /* beside: messages in a row that were each the first one after one of the peer */
};

/* A ring at a peer, which was granted to us. */
struct ib_ring_out {
    /* Made once: that of a message of one line. While none is posted, the remote address is the one of the slot before
     * the next one. */
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_send_wr *bad;
    uint64_t size;  /* bytes of a slot */
    uint64_t blank; /* ib_footer_word of the next message without number and client */
    uint32_t
        plain; /* a post that makes ib_qp.posted more is signalled, has no room or no slot, or takes the last slot */
    uint32_t usual; /* bytes of data from which a message with a header of IB_USUAL_HDR is not posted inline as it is */
    uint64_t bottom; /* remote address behind the last slot, where slot 0 comes next */
    uint32_t n, span, most;
    uint8_t detect; /* enum ib_detect */
    bool open;      /* messages may be posted by the plan */
    bool unsaid;    /* the farewell was not sent yet */
    bool left;      /* it is ours no more: slots that return are of no use */
    bool unstaged;  /* there is no memory for a staging ring */
    uint8_t around; /* messages that found no slot since the CQ was looked at for some */
    struct ib_burst burst;
    uint32_t unsignalled; /* most unsignalled posts in a row; 0: as many as there are between two of ib_qp.every */
    uint32_t word;        /* under which it was granted: sdk/hot_peers.h; 0: it is ours no more */
    uint64_t base;        /* remote address of the ring */
    struct ib_ring_memory staging;
    uint32_t farewell; /* ib_qp.posted behind the farewell, if `left`: then the device reads nothing of `staging` */
    struct ib_peer *peer;
    struct ib_ring_out *next; /* of the module */
};
_Static_assert(sizeof(struct ib_ring_out) <= 384, "one for each peer that has granted a ring");

struct ib_eager {
    struct ib_ring_in *first;   /* looked at before all others: the hottest one, or `none` */
    struct ib_ring_in **polled; /* rings whose memory is polled: first those of every round, then the quiet ones */
    uint32_t n_polled;
    uint32_t n_lively;  /* of every round */
    uint32_t n_imm;     /* rings whose messages are found in the CQ */
    bool reorder;       /* rings have changed places, or a quiet one has a message */
    uint32_t turn;      /* circular order: the ring of every round with which the next round begins */
    uint32_t quiet_at;  /* the quiet ring that was looked at last */
    uint32_t unsaid;    /* words and farewells that found no room */
    uint32_t refused;   /* peers with ib_peer.ring_refused, whose farewells found no room */
    uint32_t unlooked;  /* polls with messages since the CQ was looked at */
    uint64_t armed_ns;  /* time of the last call of ib_eager_arm */
    uint64_t idle_ns;   /* sum of the times between such calls in a row without a message by a ring: eager_idle */
    bool on;            /* peers are counted, and may be granted a ring */
    bool untried;       /* auto: it is not known yet whether the device's write beats its send */
    uint32_t ring_size; /* bytes of a slot */
    uint32_t ring_slots;
    uint32_t ring_span;       /* most slots of a message: as many less one lie below the last slot */
    struct ib_ring_in *rings; /* by place */
    struct ib_ring_out *outs;
    struct st_hot hot;
    struct st_peer_ranges favoured; /* eager_rdma_hot */
    struct ib_taking *taking;       /* NULL: nothing that may be kept is being delivered */
    struct ib_ring_in none;         /* a ring without messages, and its last word */
    uint64_t nothing;
    char image[IB_MOST_INLINE] __attribute__((aligned(16))); /* of a message that goes inline; both end together */
};

/* ---- eager.c ---- */
/* Reads eager_rdma_hot. Otherwise than for STRATA_OK, `why` holds the message for the user. */
int ib_eager_favour(struct ib_module *m, char *why, size_t why_size);
int ib_eager_open(struct ib_module *m);
void ib_eager_close(struct ib_module *m);
/* The connection has failed, or its queue pairs go: rings of both directions are given back. */
void ib_eager_reset(struct ib_peer *p);
/* The module gets ready to sleep: whether the sleep is to be short, as there are rings, whose writes wake nobody, or
 * something to be said again. */
bool ib_eager_arm(struct ib_module *m);
/* Now and then: plans of senders do not become valid again when ib_qp.posted begins anew, and the memory of rings that
 * are ours no more is released. */
void ib_eager_refresh(struct ib_module *m);
struct ib_eager_memory {
    size_t shared, own; /* resident bytes of rings and staging rings: in memory that peers can map, or private */
    size_t tables;      /* of all else */
};
struct ib_eager_memory ib_eager_memory(const struct ib_module *m);

/* ---- trial.c ---- */
/* Whether the device's write beats its send by enough; false as well where it cannot be measured. */
bool ib_eager_trial(struct ib_module *m);

/* ---- ring_memory.c ---- */
/* Bytes of a ring of n slots of `size` bytes. */
static inline size_t ib_ring_bytes(uint32_t n, uint32_t size, uint32_t span)
{
    return (size_t)(n + span - 1) * size;
}
int ib_ring_memory_get(struct ib_module *m, size_t bytes, unsigned access, struct ib_ring_memory *out);
void ib_ring_memory_put(struct ib_module *m, struct ib_ring_memory *memory);

/* ---- detect.c ---- */
/* How messages written to the peer's queue pair are to be found: the parameter, or what the device promises. */
enum ib_detect ib_detect_for(const struct ib_module *m, struct ib_peer *p);

/* ---- grant.c: the receiver grants and revokes; the sender takes and leaves ---- */
int ib_grants_open(struct ib_module *m);
/* A message of the peer came by send/receive. */
void ib_eager_count(struct ib_module *m, struct ib_peer *p);
/* IB_CONTROL_RING or IB_CONTROL_FAREWELL has come. False: it makes no sense. */
bool ib_eager_control(struct ib_module *m, struct ib_peer *p, bool farewell, const void *body, uint32_t len);
void ib_eager_say(struct ib_module *m); /* what found no room */
/* One of them is NULL: its connection ends. */
void ib_eager_unsay(struct ib_module *m, struct ib_ring_in *r, struct ib_ring_out *out);
/* The peer's connection ends: it gets no answer to a grant any more. */
void ib_eager_unrefuse(struct ib_module *m, struct ib_peer *p);

/* The sender: whether short messages may go by the peer's ring, if there is one, has changed. */
void ib_ring_limit(struct ib_peer *p);
void ib_ring_stop(struct ib_peer *p); /* there are no slots any more */

/* ---- polling.c ---- */
void ib_polling_ordered(void *m); /* the order of polling, or which rings there are, has changed: st_hot_ops.ordered */
void ib_eager_report(struct ib_module *m); /* tells the polling set of arrivals; called now and then */

/* ---- data/crowd.c ---- */
void ib_burst_begin(struct ib_peer *p); /* a ring was granted */
/* ib_burst.at posts have been made. Whether the next message goes by send and receive. */
bool ib_burst_look(struct ib_peer *p);

/* ---- ring_recv.c ---- */
#define IB_RING_OVERRUN "it has written to slots of its ring of eager RDMA that it had not got back"
int ib_rings_poll(struct ib_module *m); /* all of them, quiet or not; messages delivered */
/* Whether some ring has a message whose turn has come; those that have are looked at in the next round. */
bool ib_rings_wait(struct ib_module *m);
/* The second word of the footer in the next slot of a ring that is polled. */
static inline uint64_t ib_ring_word(const struct ib_ring_in *r)
{
    /* Acquire: pairs with the device, which writes the last byte last, or of its line. */
    return atomic_load_explicit((const _Atomic(uint64_t) *)(const void *)(r->flag + 1 - sizeof(uint64_t)),
                                memory_order_acquire);
}
/* Whether there may be a message there. */
static inline bool ib_ring_is_flagged(const struct ib_ring_in *r)
{
    return ib_ring_word(r) >> IB_FOOTER_FLAG_AT == r->expect;
}
/* The same for any ring: never where completions say so. */
static inline bool ib_ring_has_some(const struct ib_ring_in *r)
{
    return ib_ring_is_flagged(r) && r->detect != IB_DETECT_IMM;
}
/* Notes messages of one line that were taken, and ends the plan: before anything else of the peer's is received, or
 * ib_qp.received is read. A message that is being delivered is not noted: its slot is not free. */
void ib_ring_settle(struct ib_module *m, struct ib_ring_in *r);
/* Notes slots that are free again: the peer gets them back with a message, or soon by themselves. */
void ib_ring_owes(struct ib_ring_in *r, uint32_t slots);
/* A quiet ring has a message, or its peer has sent one by send and receive: it is polled in every round again, from the
 * next report on. */
static inline void ib_ring_is_lively(struct ib_eager *e, struct ib_ring_in *r)
{
    r->quiet = false;
    r->idle = 0;
    e->reorder = true;
}
/* Before a message of the peer's from the CQ is handled: all in its ring that are older. The ring is settled then. */
void ib_ring_before(struct ib_module *m, struct ib_ring_in *r);
/* The completion of a write with immediate data to the next slot. */
void ib_ring_completion(struct ib_module *m, struct ib_peer *p);

#endif

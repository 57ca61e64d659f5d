/* The module (one port of one device), its queues and its peers: what the files of this component share. Nothing here
 * is in memory that another process writes, except the bytes of receive buffers. All of it is under the context's lock.
 */
#ifndef IB_OPENIB_H
#define IB_OPENIB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <strata/sdk/btl.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/list.h>
#include <strata/sdk/mpool.h>
#include <strata/sdk/rank_table.h>
#include <strata/sdk/rcache.h>
#include <strata/sdk/slab.h>
#include "buffer.h"
#include "list.h"
#include "method.h"
#include "params.h"
#include "queue_spec.h"
#include "wire.h"

/* ---- the two priorities of a module ---- */

#define IB_BATCH 16 /* completions taken at a time */

struct ib_queue {
    struct ibv_cq *cq;
    uint32_t cqe, cqe_used; /* entries there are, and those that work requests could fill */
    struct ibv_srq *srq;    /* NULL: receive queues per peer */
    struct ib_pool receives, sends;
    /* Consumed buffers of the shared queue, to be posted again together: by `batch`, and when nothing comes.
     * Without one: 0, so that each is looked at. */
    struct ibv_recv_wr *again;
    uint32_t n_again, batch;
    uint32_t posted;  /* buffers in the shared receive queue, in completions that were not polled, and in `again` */
    uint32_t target;  /* as many are to be posted */
    uint32_t grown;   /* as many as the peers have shown to need, once; 0: the first target has always been enough */
    uint32_t srq_max; /* work requests that the shared queue was made for */
    uint32_t full;    /* looks, ever, that brought as many as one can bring */
    uint32_t full_seen, full_begun; /* then, when teardown.c looked last, and when its round began */
    bool read;                      /* in this round, to the end or as far as there was something when it began */
    uint32_t behind;  /* completions taken since the queue of completions was last seen empty, or nearly */
    bool fixed;       /* the queue of completions cannot be resized */
    bool armed;       /* the limit is set, and its event has not come */
    bool passed;      /* and yet it was seen that the limit is gone */
    bool grow;        /* few are left */
    bool short_said;  /* that the shared queue has run short */
    uint8_t rnr_code; /* that connected peers were told */
};

/* ---- a peer's queue pair ---- */

/* Work requests kept back for control messages. */
#define IB_CONTROL_SENDS 4u

enum ib_sent_kind { IB_SENT_NOTHING, IB_SENT_BUFFER, IB_SENT_OP, IB_SENT_RDMA, IB_SENT_ZCOPY };
/* A signalled work request: what ends with it, and all before it. */
struct ib_sent {
    void *what; /* struct ib_buffer, struct st_btl_op, struct ib_rdma or struct ib_zcopy */
    uint32_t up_to;
    uint8_t kind;
};
#define IB_USUAL_HDR  16u /* bytes of header that most messages have */
#define IB_KEPT_WORDS 3u
/* A header that both ends keep: imm_head.h. */
struct ib_kept_hdr {
    uint64_t word[IB_KEPT_WORDS];
    uint32_t len; /* bytes; 0: none */
    uint8_t am;   /* enum st_am: whose header it is */
};
#define IB_NO_PACKETS (1u << 31)
struct ib_qp {
    struct ibv_qp *qp;
    struct ib_peer *peer;
    uint32_t credits;      /* messages that the peer has room for */
    uint32_t crowded_at;   /* so few of them that short messages had better go together */
    uint32_t notice_at;    /* at so few it is looked whether they are a crowd; 0: not until more come */
    uint64_t noticed_ns;   /* when it was looked last */
    uint32_t posted, done; /* work requests ever; posted - done <= depth */
    uint32_t depth;
    uint32_t every;   /* one of so many is signalled, whatever it is; a power of two, less 1 */
    uint32_t number;  /* of the queue pair */
    uint32_t granted; /* messages that the peer may have under way */
    uint32_t window;  /* so much is owed at most before it is said even if nothing else is */
    uint8_t priority;
    struct ib_sent *sent;    /* ring of the signalled ones */
    uint32_t signals, ended; /* of those, ever */
    uint32_t mask;           /* of the ring */
    uint32_t receives;       /* posted to its own receive queue */
    uint32_t received;       /* messages, ever */
    uint32_t messages;       /* of low priority: sent, ever */
    uint32_t packet;         /* bytes of data: the path's MTU, or IB_NO_PACKETS */
    struct ib_kept_hdr said, heard;
};
/* wr_id of a request to send: odd, as that of a receive, which is a buffer's address, is not. */
static inline uint64_t ib_wr_id(const struct ib_qp *q)
{
    return (uintptr_t)q | 1u;
}
static inline bool ib_is_send(uint64_t wr_id)
{
    return wr_id & 1;
}
static inline struct ib_qp *ib_sender(uint64_t wr_id)
{
    return (struct ib_qp *)(uintptr_t)(wr_id & ~(uint64_t)1);
}
/* Notes a signalled work request that was posted. */
static inline void ib_posted(struct ib_qp *q, void *what, enum ib_sent_kind kind)
{
    q->posted++;
    q->sent[q->signals++ & q->mask] = (struct ib_sent){what, q->posted, (uint8_t)kind};
}

/* States of a peer: docs/design/btl_openib.md. */
enum ib_state {
    IB_IDLE,
    IB_ASKING,
    IB_ANSWERED,
    IB_UP,
    IB_DRAINING,       /* we want to close: waiting for what was sent */
    IB_ASKED_TO_CLOSE, /* and have said so */
    IB_CONSENTING,     /* the peer wants to close: waiting for what was sent */
    IB_CONSENTED,      /* and have said that it may */
    IB_CLOSED,         /* the queue pairs can go */
    IB_GONE,
    IB_FAILED
};
static inline bool ib_is_closing(uint8_t state)
{
    return state >= IB_DRAINING && state <= IB_CLOSED;
}

/* What of high priority may still pass what is on its way of low priority: passing.c. */
struct ib_passing {
    bool on;
    uint32_t left, withheld; /* credits: that may still be given out, that may not */
    uint32_t until;          /* so many work requests of low priority have ended */
};

struct ib_peer {
    struct st_btl_endpoint ep;
    uint8_t state;
    bool connected;               /* the layer above has it */
    bool usual;                   /* up, nothing held back by passing.c, no crowd noted: credits are only added */
    bool owing;                   /* in the module's list of those to be told of credits */
    bool left;                    /* it has said goodbye: errors from now on are no news */
    bool mending;                 /* failed, and to be idle again once its queue pairs have been read to the end */
    bool remade;                  /* the connection that is being made is not the first: the last one failed */
    uint64_t failed_ns;           /* when it did */
    bool counted;                 /* in n_up */
    bool flushing;                /* closed, and its own receives are to come back */
    bool misfit;                  /* its card does not fit ours, which has been said */
    bool told;                    /* it has told us itself that the connection has failed */
    uint16_t owed[IB_PRIORITIES]; /* messages of the peer consumed here and not yet said */
    uint32_t last_low;            /* messages of low priority that it has sent, as it says when it closes */
    uint32_t mine, theirs;        /* ids of the attempt that made the connection; 0: none */
    uint32_t heard;               /* messages of it at the last look of keepalive.c */
    uint32_t agreed;              /* id of the peer's attempt that made the last connection closed in agreement */
    uint32_t closing_round;       /* of reading the completion queues, when the last of its messages had come */
    uint64_t word_ns;             /* when its last word was heard before what it has sent by the connection; 0: not */
    uint32_t latest;              /* id of its attempts that was heard last: they only grow */
    uint32_t seen;                /* work requests and messages when the hand of the clock came by */
    uint32_t turned_away;         /* id of its request that was answered by BUSY last; 0: none */
    uint64_t waits_since;         /* ns; for another connection to go */
    uint64_t short_since;         /* ns; for queue pairs that the device does not give; 0: it does */
    int refusal;                  /* errno of the last that it did not give */
    struct ib_qp q[IB_PRIORITIES];
    struct ib_passing passing;
    struct ib_address *moved; /* its address, where it is not what its card says */
    struct ib_peer *next_owing;
    struct ib_peer *next; /* all of the module */
    struct ib_wire_up *up;
    const char *error; /* found, to be reported at the end of progress */
};

/* What is needed while a connection is made; freed when it is up. */
struct ib_wire_up {
    struct st_node node; /* in the module's list of those with a timer */
    struct ib_peer *peer;
    struct ib_card card; /* the peer's */
    const struct ib_method *method;
    struct ib_handle *handle;            /* ud */
    uint32_t addresses;                  /* tcp: of the peer's that were tried in vain */
    uint32_t credits[IB_PRIORITIES];     /* that the peer grants at first */
    uint64_t again_at, give_up_at, wait; /* ns */
    uint32_t repeats;                    /* of what was said and not answered */
    uint64_t began;                      /* 0: the peer has begun */
};

/* A put or get that is longer than one work request may be. */
struct ib_rdma {
    struct st_node node; /* in the module's list until all of it is posted */
    struct ib_peer *peer;
    struct st_btl_op *op;
    uint64_t local, remote, left;
    uint32_t lkey, rkey;
    bool read;
};

/* A message whose data the device takes from the caller's memory. */
struct ib_zcopy {
    struct ib_buffer *head; /* registered, with what is in front of the data */
    struct st_rcache_entry *memory;
    struct st_btl_op *op;
};

/* Peers by the number of a queue pair: a hash table with open addressing. */
struct ib_qp_map {
    struct ib_qp **slot;
    uint32_t mask, n;
};

#define IB_HEAD ((uint32_t)sizeof(struct ib_head))

/* A short message is built here and copied into the work request: request and list are made once. */
#define IB_MOST_INLINE 1024u
struct ib_short {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
    struct ibv_send_wr *bad;
    uint32_t most;      /* bytes */
    uint32_t most_data; /* so many bytes or more are not sent the shortest way: usual_data, 0 while sends are listed */
    uint32_t usual_data;
    char image[IB_MOST_INLINE] __attribute__((aligned(16)));
};

#define IB_SEEN 256u /* pages that messages were sent from lately */

struct ib_module {
    struct st_btl btl;
    const struct ib_params *par;
    struct st_rte *rte;
    struct ibv_context *device;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_port_attr port_attr;
    struct ibv_device_attr attr;
    union ibv_gid gid;
    char name[IBV_SYSFS_NAME_MAX + 8]; /* device:port */
    uint8_t port, gid_index;
    bool global;       /* addresses carry a GRH */
    bool cuts_packets; /* the device does; in software on InfiniBand messages go whole */
    bool inline_known; /* a queue pair has been made, so max_inline is what the device gave */
    enum ibv_mtu mtu;
    uint32_t index;      /* of this rail, among those that were opened */
    uint32_t place;      /* of this port, among all that may be used: rails.h */
    uint64_t rails;      /* places of all that were opened */
    int distance;        /* distance.h; -1: unknown, counts as near */
    uint32_t max_inline; /* to be asked for; when it is known, as the queue pairs have it */
    uint32_t max_rdma;   /* bytes of one work request */
    uint8_t max_reads;   /* under way to a peer */

    struct ib_queue_spec spec[IB_PRIORITIES];
    /* Read for each message: */
    bool hot;           /* there are queue pairs, and nothing is stashed */
    bool attend;        /* ib_attend was called */
    uint32_t until;     /* polls until all else is looked at */
    struct ib_qp *last; /* that the last message came by */
    uint32_t last_number;
    struct ib_queue q[IB_PRIORITIES];
    struct ib_short brief;
    struct ib_list list;
    struct st_frag frag; /* of what is being delivered */
    struct ib_qp_map map;
    uint32_t looks, rare; /* at more than completions of high priority; at what is rare */
    uint32_t low_soon;    /* polls in which low priority is looked at each time */
    struct st_rank_table peers;
    struct ib_peer *all;
    uint32_t n_peers, n_up, n_closing; /* that there are; with queue pairs; that give them up */
    uint32_t rounds;                   /* in which both completion queues were read to the end: teardown.c */
    uint64_t room_ns;                  /* when a connection was closed last for want of queue pairs */
    struct ib_peer *hand;              /* of the clock that looks for the least recently used */
    struct ib_peer *owing;
    uint64_t crowded_ns; /* when it was looked last whether crowds have ended; 0: there is none */
    struct st_slab rdmas, zcopies;
    struct ib_pool heads;   /* of messages that are not copied */
    uint32_t seen[IB_SEEN]; /* zcopy.c */
    struct st_node rdma_waiting;
    struct st_node wiring; /* struct ib_wire_up with a timer */
    uint64_t keepalive_at; /* ns */
    uint64_t limits_at;    /* ns, when the limits of shared queues are looked at next */
    uint32_t attempts;     /* to connect, ever: their ids */
    bool broken;           /* some peer has an error to be reported */
    bool dead;             /* the device has failed, or a queue: no connection is made any more */
    bool closing;
    bool stashed;      /* see stash */
    bool reg_warned;   /* that memory cannot be registered */
    char refusal[128]; /* why a peer has failed that no queue pair could be made for */

    struct ib_card card;
    void *method[IB_METHODS + 1]; /* what the methods of connecting need, by number */
    uint8_t methods[IB_METHODS];  /* that are open: those of the card, and tcp to fall back on */
    uint32_t cq_peers;            /* whose completions there is room for */
    uint32_t short_peers;         /* that had queue pairs when the device gave no more, */
    uint64_t short_until;         /* which counts until then; ns */
    bool short_in_vain;           /* one of them has gone, and the device still gives none */
    uint32_t method_looks;        /* rounds of looking at them */
    bool fallback;                /* tcp is open without being on the card */
    int wait_fd;                  /* wakes a sleeper, where that takes more than the channel; else -1 */
    struct {
        struct ibv_wc wc[16];
        int n, at;
    } stash[IB_PRIORITIES];            /* completions that arm has found */
    struct st_rcache *cache;           /* the context's, of registrations */
    struct st_rcache_client registrar; /* this module, in the cache */
    bool registrar_attached;
    uint64_t reg_refused; /* ns, since when reg has had no success; 0: it has */
    struct {
        uint64_t buffered, low, zcopy, listed, imm_heads, rdma, again, credits, grown, requests, replies, repeats,
            duplicates, refused, connected, torn_down, registered, forced, moved, probes, asked, connect_ns, slowest_ns;
    } count;
    struct st_counting counting;
};

static inline struct ib_module *ib_module(struct st_btl *btl)
{
    return (struct ib_module *)(void *)btl;
}
static inline struct ib_peer *ib_peer(struct st_btl_endpoint *ep)
{
    return (struct ib_peer *)(void *)ep;
}

/* ---- port.c: choosing devices, ports and addresses ---- */
/* Modules, without queues, for every port that is to be used; *n may be 0 with `why` saying so. With some `why` may say
 * what else the parameter names, or cannot be used. */
int ib_ports_open(const struct ib_params *par, struct ib_module ***out, size_t *n, char *why, size_t why_size);
void ib_port_close(struct ib_module *m);
bool ib_port_named(const struct ib_module *m); /* the parameter `devices` asks for it */
/* Whether it is active now; looks whether it has another address, too (address.c). */
bool ib_port_refresh(struct ib_module *m);
/* MB/s of data that the port carries each way; 1000 where its speed is none that is known here. */
uint32_t ib_bandwidth(const struct ibv_port_attr *a);
/* Bytes that one work request may put or get: parameter rdma_request, the link layer, what the device can (0: it does
 * not say). On Ethernet packets get lost, and a device goes back to the one that is missing: the less was asked for
 * beyond it the less comes again (docs/design/btl_openib.md, "Lost packets"). */
#define IB_RDMA_ON_ETHERNET  (32u << 10)
#define IB_RDMA_LEAST        (4u << 10)
#define IB_MOST_READS        16u /* under way to a peer, and served for it */
#define IB_READS_ON_ETHERNET 4u  /* 128 KiB: what is on the way on 100 Gb/s for 10 us */
uint32_t ib_longest_rdma(size_t wanted, bool ethernet, uint32_t most);
/* From which size on both ends move a half: parameter split_min, what the device is; 0: never. Software moves bytes on
 * the processor of whoever asks, so that two who ask take half the time. Of hardware nothing is gained by it, and the
 * sender's half would wait for a process that computes. */
#define IB_SPLIT_ON_ETHERNET   (64u << 10)
#define IB_SPLIT_ON_INFINIBAND (128u << 10)
size_t ib_split_min(size_t wanted, bool software, bool ethernet);
/* Up to which size a message is streamed: parameter stream_limit, what the device is. On InfiniBand in software a
 * fragment costs a copy at each end and nothing else, so that two take less time than asking the receiver. */
#define IB_STREAM_LIMIT (32u << 10)
size_t ib_stream_limit(size_t wanted, bool software, bool ethernet);
/* Up to which size a message is copied into its work request: parameter max_inline, what the device is. In software on
 * InfiniBand that is a copy in memory, and saves a buffer and its completion. Soft-RoCE has its queues of work requests
 * in kernel memory, which longer ones would double. */
#define IB_MAX_INLINE 192u
uint32_t ib_max_inline(size_t wanted, bool software, bool ethernet);
/* Nothing stands behind the device in sysfs: Soft-RoCE, siw, softhca. */
bool ib_is_software(const struct ibv_device *d);

/* ---- module.c ---- */
int ib_module_open(struct ib_module *m, strata_t *s, const struct st_component *c, char *why, size_t why_size);
/* Tells the other processes, when all that can be opened are: this is one of `rails`. */
int ib_module_publish(struct ib_module *m, uint64_t rails);
void ib_close(struct st_btl *btl);

/* ---- explain.c: why an object cannot be made ---- */
enum ib_resource { IB_PDS, IB_CQS, IB_SRQS, IB_QPS, IB_MRS };
/* Says what cannot be made, errno's text and, for ENOMEM, which limit it is likely to be: the device's number of such
 * objects, or the memory that this process may lock. */
void ib_explain(const struct ib_module *m, enum ib_resource resource, const char *what, char *why, size_t why_size);

/* ---- queue.c: completion queues and shared receive queues ---- */
int ib_queues_open(struct ib_module *m, char *why, size_t why_size);
/* Whether the device's queues hold what the parameters want of each; `why` says which do not. */
bool ib_queues_fit(const struct ib_module *m, char *why, size_t why_size);
void ib_queues_close(struct ib_module *m);
/* Makes room for the completions of n more work requests. */
int ib_cq_reserve(struct ib_module *m, uint32_t priority, uint32_t n);
void ib_cq_release(struct ib_module *m, uint32_t priority, uint32_t n);
/* There is one more connected peer: x = log2(n) * k + b. */
void ib_srq_retarget(struct ib_module *m);
void ib_srq_fewer(struct ib_module *m); /* one less: x buffers are left when those in excess have been used */
/* How long a sender waits that finds no buffer, as the code of the specification's table 45. The longer the more peers
 * there are for one buffer of a shared queue that cannot grow: all that wait try again in turn, and too many attempts
 * would take the receiver's time. */
uint8_t ib_rnr_code(const struct ib_module *m, uint32_t priority);
/* Posts what has been consumed, and more when the queue is to grow or few are left. */
void ib_srq_fill(struct ib_module *m, uint32_t priority);
/* Messages that one more peer may have under way. */
uint32_t ib_grant(const struct ib_module *m, uint32_t priority);
/* IB_BATCH completions were there at once. */
void ib_srq_behind(struct ib_module *m, uint32_t priority);
/* The device says that few buffers are left. */
void ib_srq_limit(struct ib_module *m, uint32_t priority);
/* The event may get lost: looks now and then whether the limit is gone without it. */
void ib_srq_limits_look(struct ib_module *m);

/* ---- qp.c: queue pairs of a peer ---- */
int ib_qps_make(struct ib_peer *p);
/* To RTS. STRATA_ERR_AGAIN: the peer has taken back what it said, and nothing was done. */
int ib_qps_connect(struct ib_peer *p, const struct ib_conn *theirs);
void ib_qps_unmake(struct ib_peer *p); /* what was made and not connected */
void ib_qps_destroy(struct ib_peer *p);
int ib_qp_map_init(struct ib_qp_map *map);
void ib_qp_map_destroy(struct ib_qp_map *map);
uint32_t ib_own_receives(const struct ib_module *m, uint32_t priority); /* of a receive queue per peer; 0: shared */
struct ib_qp *ib_qp_map_find(const struct ib_qp_map *map, uint32_t qpn);
/* A consumed buffer of a receive queue per peer: posted again; or not, after an error (q NULL: of one that has gone).
 */
void ib_rq_recycle(struct ib_queue *queue, struct ib_qp *q, struct ib_buffer *b);
void ib_rq_lost(struct ib_queue *queue, struct ib_qp *q, struct ib_buffer *b);

/* ---- endpoint.c ---- */
int ib_reach(struct st_btl *btl, int rank);
int ib_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
void ib_disconnect(struct st_btl_endpoint *ep);
struct ib_peer *ib_peer_get(struct ib_module *m, int rank); /* made if need be; NULL: no memory */
void ib_peer_broken(struct ib_peer *p, const char *why);    /* reported at the end of progress */
void ib_report_broken(struct ib_module *m);
/* The card of rank's port that corresponds to this one. Where there is none its version is 0, and `rails` are the
 * others that rank has. */
int ib_card_fetch(struct ib_module *m, int rank, struct ib_card *out, char *why, size_t why_size);
void ib_misfit(struct ib_module *m, int rank, const struct ib_card *card, const char *why); /* logs it once */

/* ---- connect.c: the state machine; method.h: what it talks by ---- */
int ib_wire_up_begin(struct ib_peer *p); /* on the first send */
void ib_wire_up_end(struct ib_peer *p);
/* A message has come by `method`, or bytes that claim to be one. False: they are not of this job. */
bool ib_wire_up_take(struct ib_module *m, const struct ib_method *method, const struct ib_conn *c);
void ib_wire_up_timers(struct ib_module *m);
void ib_wire_up_heard(struct ib_peer *p);  /* its first message has come */
void ib_wire_up_failed(struct ib_peer *p); /* tells the peer, for a while */
void ib_wire_up_moved(struct ib_peer *p);  /* the same: that we have another address */
void ib_wire_up_anew(struct ib_peer *p);   /* our request is to be another one from now on */
/* Says our last word of a connection until the peer has answered it. STRATA_ERR_UNSUPPORTED: there is no way. */
int ib_wire_up_close(struct ib_peer *p);
/* Tells rank, whose card is given, that it does not fit. */
void ib_wire_up_misfit(struct ib_module *m, int rank, const struct ib_card *card);

/* ---- address.c ---- */
void ib_address_changed(struct ib_module *m); /* ours, which m->port_attr and m->gid say */
/* A peer may have said another one than we know. */
void ib_address_heard(struct ib_module *m, struct ib_peer *p, const struct ib_conn *c);
void ib_address_apply(const struct ib_peer *p, struct ib_card *card);

/* ---- keepalive.c ---- */
void ib_keepalive(struct ib_module *m); /* called now and then */

/* ---- teardown.c ---- */
void ib_teardown_begin(struct ib_peer *p); /* nothing unless it is up */
bool ib_drained(const struct ib_peer *p);  /* nothing of low priority is on its way */
void ib_teardown_mend(struct ib_peer *p);  /* it has failed, and may be connected again when nothing is left of it */
/* The peer wants to close, and has finished: it has sent so many messages of low priority. */
void ib_teardown_asked(struct ib_peer *p, uint32_t low);
void ib_teardown_left(struct ib_peer *p, uint32_t low);     /* it has said goodbye, likewise */
void ib_teardown_answered(struct ib_peer *p, uint32_t low); /* it has finished, too */
/* Both completion queues have been polled since the last call, and nothing is stashed. */
void ib_teardown_progress(struct ib_module *m);
bool ib_teardown_polls(const struct ib_module *m); /* whether something waits for that, and not for the peer */
/* A request has ended with an error: true when that does not mean that the connection has failed. */
bool ib_teardown_forgives(struct ib_peer *p);
/* The peer has said its last word by the way of connecting, with how many messages it had sent before. */
enum ib_word { IB_WORD_TAKEN, IB_WORD_EARLY /* it is to say it again */, IB_WORD_LOST /* not all has come */ };
enum ib_word ib_teardown_word(struct ib_peer *p, bool too, uint32_t high, uint32_t low);
/* It has had ours. False: its own is to come yet. */
bool ib_teardown_heard(struct ib_peer *p);
/* It asks for a new connection, having closed this one in agreement or not. */
void ib_teardown_requested(struct ib_peer *p, bool agreed);

/* ---- pressure.c ---- */
/* Whether p may be connected now; where there are too many, the least recently used one is asked to go. */
bool ib_room_for_connection(struct ib_module *m, struct ib_peer *p);
bool ib_room_for_request(struct ib_module *m, struct ib_peer *p); /* the same for one who asks us */
/* The device has just given no more queue pairs; whether it has lately. For so long only as many peers are asked at a
 * time as leave room for those who ask us. */
void ib_is_short_now(struct ib_module *m);
bool ib_is_short(const struct ib_module *m);
bool ib_asks_too_many(const struct ib_module *m);
uint64_t
ib_kept_peers(const struct ib_module *m); /* as max_connected_peers has it, with those taken when asked; 0: any */
/* Queue pairs are wanted that the device does not give: closes a connection. */
void ib_teardown_make_room(struct ib_module *m);

/* ---- send.c ---- */
int ib_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len);
int ib_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload);
void ib_batch(struct st_btl *btl, bool on);
int ib_send_control(struct ib_peer *p, enum ib_control kind);
void ib_send_credits(struct ib_module *m); /* to all that are owed many */
void ib_brief_init(struct ib_short *b, uint32_t most);
/* Credits that are left when coalesce_at more messages have been sent. */
static inline uint32_t ib_crowd_from_now(const struct ib_module *m, const struct ib_qp *q)
{
    uint32_t most = (uint32_t)m->par->coalesce_at;

    return q->credits > most ? q->credits - most : 0;
}
void ib_crowded(struct ib_qp *q); /* so many messages under way that it has to be looked how fast they came */
void ib_crowds_end(struct ib_module *m);
/* Until what is sent shows otherwise. */
static inline void ib_not_crowded(struct ib_peer *p)
{
    p->ep.caps &= ~(uint32_t)ST_BTL_CROWDED;
    p->q[IB_HIGH].notice_at = p->q[IB_HIGH].crowded_at;
}
void ib_owe(struct ib_peer *p); /* it is to be told of credits soon */

bool ib_send_room(struct ib_module *m, struct ib_peer *p, const struct ib_qp *q); /* after a look for completions */
int ib_send_not_now(struct ib_peer *p);                                           /* why there is none */

/* ---- passing.c ---- */
void ib_passing_begin(struct ib_peer *p);               /* a message of low priority has been posted */
void ib_passing_credits(struct ib_peer *p, uint32_t n); /* instead of adding them, while it is on */
void ib_passing_ended(struct ib_peer *p);               /* something of low priority has */

/* Nothing is begun any more. */
void ib_credits_drop(struct ib_peer *p);

/* ---- zcopy.c ---- */
int ib_zcopy_open(struct ib_module *m);
int ib_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                  uint32_t len, struct st_btl_op *op);
void ib_zcopy_ended(struct ib_module *m, struct ib_zcopy *z, int rc);

/* ---- rdma.c ---- */
int ib_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int ib_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
void ib_rdma_progress(struct ib_module *m);
void ib_rdma_ended(struct ib_rdma *r, int rc);
void ib_rdma_cancel(struct ib_peer *p);

/* ---- registration.c: user memory, through the context's cache ---- */
/* What travels as the key of registered memory. */
struct ib_key {
    uint32_t rkey;
    uint32_t rail; /* of the owner: keys of one device mean nothing to another */
};
_Static_assert(sizeof(struct ib_key) <= ST_BTL_KEY_MAX, "a key fits");
int ib_registrations_open(struct ib_module *m);
void ib_registrations_close(struct ib_module *m); /* undoes them all; nothing may be under way */
void ib_registrations_apply(struct ib_module *m); /* of memory that has gone away */
int ib_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
void ib_dereg(struct st_btl *btl, struct st_btl_reg *reg);
static inline const struct ibv_mr *ib_reg_mr(const struct st_btl_reg *reg)
{
    return ((const struct st_rcache_entry *)reg->handle)->handle;
}

/* ---- progress.c ---- */
int ib_progress(struct st_btl *btl);
int ib_arm(struct st_btl *btl, struct st_btl_wait *w);
void ib_disarm(struct st_btl *btl);
/* Makes the next poll, or what is left of the present one, look at more than completions of high priority. */
static inline void ib_attend(struct ib_module *m)
{
    m->attend = true;
    m->until = 1;
}
/* Polls in which low priority is looked at each time after something was sent or has come there. In between it is
 * looked at now and then. */
#define IB_LOW_SOON 256u
static inline void ib_expect_low(struct ib_module *m)
{
    m->low_soon = IB_LOW_SOON;
    ib_attend(m);
}
/* Looks for completions of sends and for credits while nothing else may be handled; the rest is stashed. */
void ib_reclaim(struct ib_module *m);
/* Ends all that was posted and has not ended, with rc for operations. */
void ib_sent_drop(struct ib_qp *q, int rc);

/* ---- async.c ---- */
void ib_async_poll(struct ib_module *m);

/* ---- report.c ---- */
void ib_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
#define IB_N_COUNTERS 21
extern const struct st_counter ib_counters[IB_N_COUNTERS];
void ib_count(const struct st_counting *counting, uint64_t *value);
char *ib_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif

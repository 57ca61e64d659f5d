/* The module and its peers: what the files of this component share. */
#ifndef SM_H
#define SM_H

#include <strata/sdk/btl.h>
#include <strata/sdk/polling_set.h>
#include "params.h"
#include "queue.h"
#include "ring.h"

#define SM_SOCKET_NAME 40u
#define SM_NO_GRANT    0xffffffffu /* never a grant word: "I have no ring" */
#define SM_CARD_KEY    "btl_sm"

/* What a process publishes. */
struct sm_card {
    uint32_t version;
    uint32_t pid;
    uint32_t uid;
    int32_t fd;
    uint64_t pid_ns; /* inode of the pid namespace in which pid counts */
    uint64_t boot;   /* hash of the boot id: processes of one running kernel */
    uint64_t job;
    uint64_t probe_address, probe_value;
    uint8_t key[16];
    char socket[SM_SOCKET_NAME]; /* abstract AF_UNIX name, without the leading NUL; "" if there is none */
};

/* Control messages: payload of words with SM_WORD_CTL. */
enum sm_ctl {
    SM_CTL_GRANTS, /* the sender of this has changed the receiver's grant */
    SM_CTL_COOP    /* struct sm_coop_call: come and help to copy */
};

enum { SM_ATTACHED_PROC = 1, SM_ATTACHED_SOCKET = 2 };

/* An attached process. Made on first contact in either direction; its endpoint counts once `connected`. Reading its
 * cells takes the mapping only; to send I need an entry in its directory: `my_index`. */
struct sm_peer {
    struct st_btl_endpoint ep;
    /* Sending: the first lines. */
    _Atomic(uint32_t) *grant; /* my word in the peer's segment; without an entry there, the module's no_grant */
    uint32_t granted;         /* the grant under which tx is valid, or SM_NO_GRANT */
    uint32_t my_index;        /* of my entry in the peer's directory, or SM_DIR_NONE */
    uint32_t left;            /* the last grant that I gave back */
    uint32_t left_index;      /* an entry that I have left and may enter again, or SM_DIR_NONE */
    struct sm_header *header; /* of the peer's segment */
    struct sm_ring_tx tx;
    struct sm_slot *slots; /* of the peer's shared queue */
    uint32_t n_slots;
    uint32_t max_send; /* longest payload that the peer's rings take */
    uint32_t movs_min; /* from which length REP MOVSB copies best here */
    /* Seldom. */
    uint8_t *base;
    struct sm_geometry geometry;
    uint32_t pid;
    uint8_t attached_by;
    bool connected, failed;
    bool foreign_pid;        /* its pid counts in another namespace */
    bool missed, died;       /* its process was not found once; has ended without a word, which was reported */
    bool gone;               /* has ended: nothing of it is mapped any more; only the endpoint is left */
    uint8_t single_copy;     /* enum sm_single_copy in force; never AUTO */
    const char *no_copy_why; /* why it is off */
    struct sm_peer *next;
};
_Static_assert(sizeof(struct sm_peer) <= 256, "memory per peer is a budget");

/* What I believe of an entry of my directory. */
struct sm_sender {
    struct sm_peer *peer; /* NULL: not attached */
    uint32_t name;        /* rank + 1; 0: nothing yet */
    uint32_t pid : 24;    /* 0: it cannot be looked for, or has not been asked for; liveness.c */
    uint32_t asked : 1, missed : 1, told : 1;
};
_Static_assert(sizeof(struct sm_sender) <= 16, "memory per peer is a budget");

enum sm_sweep { SM_SWEEP_NOT, SM_SWEEP, SM_SWEEP_DEAD };

struct sm_op; /* a single copy under way: single_copy.c */
struct sm_help;

struct sm_module {
    struct st_btl btl;
    const struct sm_params *par;
    struct st_rte *rte;
    struct sm_segment seg;
    struct sm_header *header;
    struct sm_queue_rx queue;

    /* Rings of mine, polled in this order. */
    struct sm_ring_rx *rings;
    struct sm_ring_rx **order;
    uint32_t n_rings, n_order;
    struct st_polling_set *set;
    bool rings_off;      /* no memory for more */
    uint32_t generation; /* of grants */
    uint32_t n_revoked;  /* rings whose BYE is awaited, nudges due */

    /* Processes of this machine. */
    struct sm_dir_entry *dir; /* in the segment */
    uint32_t n_dir;
    struct sm_sender *senders;   /* by index in the directory */
    struct sm_peer *peers;       /* list of those attached */
    uint32_t n_peers, newcomers; /* newcomers: peers and senders since the dead were last looked for */
    uint32_t leavers_seen, crowd_seen;
    uint8_t sweep_again; /* enum sm_sweep: entries were left that could not be taken back yet */
    bool collect;        /* a peer may have become useless */
    _Atomic(uint32_t) no_grant;

    /* Cells of mine. */
    uint32_t n_cells_ready, cell_hint;
    int *cell_to; /* by cell: the rank it went to last */

    /* Slow things that progress looks after when there are any. */
    uint32_t work; /* number of them: single copies, helps, nudges */
    uint32_t idle; /* progress calls that found nothing */
    struct sm_doubt *doubts;
    int64_t look_at_ms; /* when processes are looked for next: liveness.c */
    struct sm_op *ops_first, *ops_last;
    struct sm_help *helps, *helps_last;
    uint32_t coop_used; /* bitmap of coop descriptors in use */
    uint32_t coop_generation;
    uint32_t movs_min;
    bool calibrated;
    uint32_t kernel_ns, cache_ns; /* what calibration measured for 64 KiB */

    struct sm_card card;
    int listen_fd;
    struct {
        uint64_t ring, queue, cell, again, violations, demotions, coop, one_sided, helped, promoted, revoked, wakes,
            sleeps, taken_back;
    } count;
    struct st_counting counting;
};

static inline struct sm_module *sm_module(struct st_btl *btl)
{
    return (struct sm_module *)(void *)btl;
}
static inline struct sm_peer *sm_peer(struct st_btl_endpoint *ep)
{
    return (struct sm_peer *)(void *)ep;
}
/* attach.c */
int sm_card_make(struct sm_module *m);
void sm_card_drop(struct sm_module *m);
int sm_card_fetch(struct sm_module *m, int rank, struct sm_card *out, char *why, size_t why_size);
int sm_attach(struct sm_module *m, int rank, struct sm_peer **out, char *why, size_t why_size);
void sm_unmap(struct sm_peer *p);
bool sm_process_alive(uint32_t pid);
/* Of an attached process; true where that cannot be known, for one of another pid namespace. */
bool sm_peer_alive(const struct sm_peer *p);

/* liveness.c */
/* The process of a rank that has published a card; 0: of another pid namespace, or there is no card. */
uint32_t sm_pid_of(struct sm_module *m, int rank);
/* Tells of those that have ended without a word. When rings and queue are empty; not from inside a callback. */
void sm_look_for_ended(struct sm_module *m);
/* Rank cannot be attached: it may be about to end. */
void sm_doubt(struct sm_module *m, int rank);
void sm_doubts_free(struct sm_module *m);

/* directory.c */
/* Gets an entry in the peer's directory: what is needed to send to it. STRATA_ERR_UNREACHABLE: see why; a full
 * directory has had timeout_ms to get room. */
int sm_enter(struct sm_peer *p, int64_t timeout_ms, char *why, size_t why_size);
/* Gives ring and entry back to the peer. What was sent still arrives. */
void sm_leave(struct sm_peer *p);
/* True when the entry `src` of my directory names a peer: sm_rank_at(m, src). */
bool sm_known_slow(struct sm_module *m, uint32_t src);
static inline bool sm_known(struct sm_module *m, uint32_t src)
{
    return src < m->n_dir && (m->senders[src].name != 0 || sm_known_slow(m, src));
}
static inline int sm_rank_at(const struct sm_module *m, uint32_t src)
{
    return (int)(m->senders[src].name - 1);
}
/* The peer of this entry has given it back, or nobody has it any more. */
static inline bool sm_has_left(const struct sm_module *m, uint32_t src)
{
    return atomic_load_explicit(&m->dir[src].name, memory_order_acquire) != m->senders[src].name;
}
/* Whether rank has an entry in my directory, left or not: something of it may be unread. */
bool sm_named(const struct sm_module *m, int rank);
/* Whether rank, which has published a card, is known not to live any more. */
bool sm_rank_dead(struct sm_module *m, int rank);
/* Takes back the entries of processes that have left, and of dead ones if asked to or if somebody finds no room. Cheap
 * when there is nothing to do. True: there was. */
bool sm_dir_sweep(struct sm_module *m, bool look_for_dead);

/* attach_socket.c */
int sm_socket_listen(char name[SM_SOCKET_NAME], const uint8_t key[16]);
void sm_socket_serve(struct sm_module *m); /* answers those who wait, without blocking */
int sm_socket_fetch(struct sm_module *m, const struct sm_card *card, char *why, size_t why_size); /* an fd or -1 */

/* endpoint.c */
int sm_reach(struct st_btl *btl, int rank);
int sm_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
void sm_disconnect(struct st_btl_endpoint *ep);
struct sm_peer *sm_peer_find(const struct sm_module *m, int rank); /* NULL: not attached */
/* The peer behind a known entry of my directory, or of a rank, attached if need be; NULL when that fails (reported). */
struct sm_peer *sm_peer_at(struct sm_module *m, uint32_t src);
struct sm_peer *sm_peer_of(struct sm_module *m, int rank);
void sm_peer_violation(struct sm_module *m, int rank, const char *what);
/* The kernel says that its process is no more: reported once. What it had sent is still taken. */
void sm_peer_died(struct sm_peer *p);
/* Looks after those who have left or died: entries of mine, their memory mapped here. Not from inside a callback. */
void sm_tidy(struct sm_module *m);
void sm_peers_close(struct sm_module *m);

/* send.c */
int sm_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
            uint32_t len);
int sm_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                    const struct st_payload *payload);
int sm_send_ctl(struct sm_peer *p, enum sm_ctl kind, const void *what, uint32_t len);
int sm_cells_ready(struct sm_module *m); /* at least one cell: STRATA_ERR_NOMEM if not */
bool sm_cells_idle(struct sm_module *m);
bool sm_cells_out(const struct sm_module *m, int rank); /* some are on their way to rank */
void sm_cells_recover(struct sm_module *m, int rank);   /* takes those back: rank has ended and reads no more */

/* polling.c */
int sm_rings_open(struct sm_module *m);
void sm_rings_close(struct sm_module *m);
void sm_shared_arrival(struct sm_module *m, uint32_t local);
void sm_ring_report(struct sm_module *m, uint32_t ring);
void sm_ring_left(struct sm_module *m, uint32_t ring);   /* the sender's BYE has been read */
void sm_ring_broken(struct sm_module *m, uint32_t ring); /* not to be polled again */
void sm_nudge(struct sm_module *m);
/* Sender's side: the grant word reads g, not p->granted. STRATA_OK: see p->granted; STRATA_ERR_AGAIN. */
int sm_grant_changed(struct sm_peer *p, uint32_t g);

/* progress.c */
int sm_progress(struct st_btl *btl);
bool sm_pending(struct sm_module *m);

/* wake.c */
void sm_wake_init(void);
void sm_wake_peer(struct sm_peer *p);
/* Whether the owner sleeps: looked at after something was published for it. The fence keeps the compiler from looking
 * first; that the processors keep the order the sleeper sees to, by membarrier, so that only a load is paid here. */
static inline bool sm_asleep(const struct sm_peer *p)
{
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&p->header->sleeping, memory_order_relaxed);
}
int sm_arm(struct st_btl *btl, struct st_btl_wait *w);
void sm_disarm(struct st_btl *btl);

/* single_copy.c, coop.c */
void sm_copy_probe(struct sm_peer *p, const struct sm_card *card);
int sm_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int sm_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
           struct st_btl_reg *reg, struct st_btl_op *op);
int sm_copy_progress(struct sm_module *m);
void sm_copy_cancel(struct sm_peer *p); /* operations with p end with STRATA_ERR_PEER */
void sm_copy_close(struct sm_module *m);
bool sm_copy_busy(const struct sm_module *m, const struct sm_peer *p); /* something under way needs p */
void sm_coop_called(struct sm_module *m, uint32_t src, const void *what, uint32_t len);

/* report.c */
void sm_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
#define SM_N_COUNTERS 7
extern const struct st_counter sm_counters[SM_N_COUNTERS];
void sm_count(const struct st_counting *counting, uint64_t *value);
char *sm_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

#endif

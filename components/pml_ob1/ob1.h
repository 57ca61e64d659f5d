/* Private to pml_ob1: its objects and what its files offer to each other. Hot helpers are in ob1_inl.h. */
#ifndef OB1_H
#define OB1_H

#include <strata/sdk/idle.h>
#include <strata/sdk/pml.h>
#include <strata/sdk/rank_table.h>
#include "choose.h"
#include "ids.h"
#include "match.h"
#include "wire.h"

struct ob1;
struct ob1_peer;

struct ob1_config {
    size_t eager_limit;
    int64_t stream_limit;
    size_t rdma_min;
    size_t split_min;
    size_t stripe_min;
    size_t piece;
    int64_t depth;
    size_t coalesce;
    size_t unexpected_max;
    int64_t spin;
    struct st_worker_paths paths;
    int rndv; /* enum ob1_rndv */
};

/* A member of one matching context that has been spoken to or heard from: one cache line, all that the hot paths need.
 */
struct ob1_cpeer {
    int (*send)(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                uint32_t len);
    struct st_btl_endpoint *ep;
    int64_t fast_limit; /* messages up to here go out at once; -1: not connected, something queued, failed */
    int32_t rank;       /* in the context */
    int32_t job_rank;
    /* Next to send, next expected. The lower 16 bits travel; the whole also counts messages. */
    uint32_t send_seq, recv_seq;
    struct ob1_held *held; /* what arrived ahead of its turn, or NULL */
    struct ob1_peer *peer;
    struct ob1_cpeer *next_of_peer;
};
_Static_assert(sizeof(struct ob1_cpeer) == 64, "the budget of a peer in a context");

/* Fragments that arrived ahead of their turn, by sequence number: a ring that grows (sequence.c). */
struct ob1_held {
    uint32_t mask, n;
    struct ob1_msg *slot[];
};

/* The PML's part of a peer. */
struct ob1_peer {
    struct st_peer *shared;   /* the worker's part: paths, pending work */
    struct st_node first;     /* requests whose first fragment waits; they get their sequence numbers when they leave */
    struct st_node streams;   /* coming in from it */
    struct st_node throttled; /* in ob1.throttled while we have asked it to announce messages */
    struct ob1_cpeer *cpeers;
    uint32_t eager_limit; /* of paths[0] or the lane, the parameter applied */
    uint32_t stream_limit;
    uint32_t zcopy_min; /* UINT32_MAX: never */
    uint32_t next_stream;
    uint32_t lost_caps; /* what its paths turned out not to be able to do */
    bool announce;      /* it has asked us to */
};

struct ob1_comm {
    struct strata_comm head;
    struct ob1_cpeer *to, *from; /* used last; never NULL */
    struct ob1_match match;
    struct st_rank_table peers; /* struct ob1_cpeer by rank */
    struct ob1_comm *next;      /* of the same slot in the table of contexts */
};

enum ob1_kind { OB1_SEND = 1, OB1_RECV = 2 };

/* Reasons to take the long way at completion: bits in strata_request.end_bits. */
enum {
    OB1_END_CALLBACK = 1u << 0, /* fn is called */
    OB1_END_FREED = 1u << 1,    /* nobody waits: give the storage back */
    OB1_END_BUFFERED = 1u << 2, /* a block of the attached buffer is given back */
    OB1_END_ID = 1u << 3,       /* an id is given back */
    OB1_END_REG = 1u << 4,      /* a registration is given back */
    OB1_END_QUEUED = 1u << 5    /* complete; its callback is about to be called */
};

struct ob1_req {
    struct strata_request head;
    strata_data_t data;
    struct ob1_peer *peer; /* once a protocol runs between us */
    uint64_t id;           /* our name for it on the wire, 0: none */
    uint64_t done;         /* bytes moved */
    uint64_t expect;       /* receive: bytes wanted (the smaller of message and room) */
    uint32_t tasks;        /* that refer to it */
    int32_t tag;           /* wanted; kept for persistent requests */
    int32_t rank;          /* wanted source, or destination */
    uint8_t mode;
    bool matched;
    bool failed; /* completes as soon as no task refers to it */
    union {
        struct { /* receive */
            struct ob1_posted posted;
            uint64_t sender_id, address;
            uint8_t offer;          /* OB1_F_EXPOSED, OB1_F_KEY: what the sender lets us do with its memory */
            struct st_btl *key_btl; /* that `key` is for */
        };
        struct { /* send */
            struct st_work work;
            struct ob1_cpeer *to; /* NULL: the context was freed, `seq` is set */
            uint32_t stream, stream_at;
            uint32_t context;
            int32_t src; /* my rank in it */
            uint16_t seq;
            uint8_t protocol; /* enum ob1_protocol */
            void *block;      /* of the attached buffer */
            struct st_btl_reg *reg;
            struct st_btl *reg_btl;
            struct st_btl_op lent; /* the data is the transport's until it says that it is done */
            struct ob1 *pml;       /* for it: the context may have been freed */
        };
        struct ob1_req *next_callback;
    };
    uint8_t key[ST_BTL_KEY_MAX]; /* receive: the sender's memory */
};
_Static_assert(sizeof(struct ob1_req) <= 288, "the budget of a request");

/* A message without a receive, or ahead of its turn; what a matched probe returns. */
struct ob1_msg {
    struct strata_message head;
    struct ob1_unexp unexp;
    struct ob1_cpeer *from;
    struct ob1_arrival a;
    struct ob1_stream *stream;
    void *keep;           /* of the BTL that it came by, to be given back */
    struct ob1_msg *next; /* of those for contexts that do not exist yet */
    uint32_t room_size;   /* bytes of payload kept: in `room` when it fits there, else in a block of its own */
    char room[];
};
#define OB1_MSG_ROOM 64u

/* A message that comes in as a stream (stream.c). */
struct ob1_stream {
    struct st_node node;
    uint32_t number, total, got;
    bool ordered;        /* so far each fragment continued the one before */
    bool announced;      /* its OB1_STREAM has arrived */
    char *buffer;        /* NULL: goes straight to req */
    struct ob1_req *req; /* the receive that has matched, or NULL */
    int failed;
    int32_t rank; /* of the sender in the job */
};

/* A range of a rendezvous message on one path (task.c). */
struct ob1_task {
    struct st_work work;
    struct ob1_peer *peer;
    struct ob1_req *req;
    uint64_t base;      /* where the range begins in the message */
    uint64_t next, end; /* of it, not yet started */
    uint64_t moved;     /* bytes */
    uint64_t answer;    /* the peer's name for where it goes */
    uint64_t remote;    /* put: address of `base` there */
    uint64_t fail_at;   /* put: first byte that a lost capability left behind */
    uint32_t in_flight; /* pieces */
    bool parked;        /* waits for a piece, not queued */
    bool path_lost;     /* put: what is behind fail_at was left because its path failed */
    uint8_t key[ST_BTL_KEY_MAX];
};

struct ob1_piece {
    struct st_btl_op op;
    struct ob1 *pml;
    struct ob1_task *task;
    uint64_t offset, length;
    uint64_t id; /* of a put that was asked for */
    bool registered;
    struct st_btl *btl;
    struct st_btl_reg reg;
};

/* What was got in this round of progress and is not yet reported: of one peer, by one path (fin.c). */
#define OB1_FINS 8u
struct ob1_fins {
    struct ob1_peer *peer;
    uint32_t n;
    uint8_t path;
    struct wire_fin fin[OB1_FINS];
};

#define OB1_CONTROL_DATA ((OB1_FINS - 1) * sizeof(struct wire_fin))
_Static_assert(OB1_CONTROL_DATA >= ST_BTL_KEY_MAX && OB1_CONTROL_DATA <= UINT8_MAX, "keys and reports fit");

/* A control message that waits. */
struct ob1_control {
    struct st_work work;
    struct ob1_peer *peer;
    uint8_t hdr_len, len;
    uint8_t hdr[ST_BTL_HDR_MAX];
    uint8_t data[OB1_CONTROL_DATA];
};

#define OB1_COMM_CACHE 16u

/* Why progress calls ob1_attend: ranges that were got wait to be reported. */
#define OB1_WORK (ST_ATTEND_WORK << ST_AM_PML)

struct ob1 {
    struct st_pml head;
    bool threaded;
    bool in_callbacks;
    struct st_node throttled; /* peers that were asked to announce messages */
    struct ob1_req *ended;    /* callbacks to call */
    struct ob1_req **ended_last;
    struct ob1_comm *by_id[OB1_COMM_CACHE];

    struct ob1_comm **comms; /* table by id */
    uint32_t comms_mask, n_comms;
    size_t n_peers, n_cpeers, n_held_slots;
    struct st_slab requests, messages, tasks, pieces, controls, streams, cpeers;
    struct ob1_ids ids;
    struct strata_request done; /* the static complete request */
    struct ob1_cpeer nobody;    /* what comm->to and from point to at first */
    struct ob1_config config;
    int rank, size;
    struct ob1_msg *early, **early_last; /* for contexts that do not exist yet, in order of arrival */
    uint64_t n_early, n_dropped, n_protocol_errors, n_throttles, n_coalesced;
    size_t unexpected_bytes, unexpected_peak;
    struct ob1_fins fins;
    uint64_t detached; /* sends that nobody waits for: buffered or freed */
    struct st_counting counting;
    uint64_t by_protocol[OB1_P_COUNT];
    uint64_t n_sent, n_received; /* messages of members of contexts that have been freed */
    struct ob1_bsend *bsend;
    void *bounce; /* for what must be packed before it can be sent */
};

/* comm.c */
int ob1_comm_add(strata_comm_t *comm);
void ob1_comm_del(strata_comm_t *comm);
void ob1_comms_destroy(struct ob1 *pml);

/* comm_table.c */
struct ob1_comm *ob1_comm_find(struct ob1 *pml, uint32_t id);
int ob1_comm_rank_of(const struct ob1_comm *c, int job_rank); /* -1: not a member */
int ob1_comm_table_room(struct ob1 *pml);                     /* for one more: STRATA_OK, STRATA_ERR_NOMEM */
void ob1_comm_table_add(struct ob1 *pml, struct ob1_comm *c);
void ob1_comm_table_remove(struct ob1 *pml, struct ob1_comm *c); /* if it is there */
void ob1_comm_table_destroy(struct ob1 *pml);

/* peer.c */
int ob1_peer_find(struct ob1 *pml, int job_rank, struct ob1_peer **out); /* made if need be, not connected */
/* The PML's part of a peer, or NULL. */
ST_INLINE struct ob1_peer *ob1_peer_of(const struct st_peer *shared)
{
    return shared->client[ST_AM_PML];
}
void ob1_peer_changed(void *arg, struct st_peer *shared);                 /* struct st_client.peer_changed */
int ob1_cpeer_find(struct ob1_comm *c, int rank, struct ob1_cpeer **out); /* made if need be */
void ob1_peer_limits(struct ob1 *pml, struct ob1_peer *peer);             /* thresholds from transport and parameters */
void ob1_peer_fast(struct ob1_peer *peer); /* sets fast_limit of its cpeers to what is true now */
uint8_t ob1_peer_path_of(const struct ob1_peer *peer, const struct st_btl *btl);
void ob1_peers_destroy(struct ob1 *pml);

/* sequence.c */
int ob1_held_insert(struct ob1_cpeer *p, uint16_t seq, struct ob1_msg *msg); /* STRATA_ERR_PROTOCOL: stale */
struct ob1_msg *ob1_held_next(struct ob1_cpeer *p);                          /* the one whose turn it is */
void ob1_held_drop(struct ob1 *pml, struct ob1_cpeer *p);

/* throttle.c: the account of unexpected payload; job_rank has sent it */
void ob1_unexpected_grew(struct ob1 *pml, int job_rank, size_t bytes);
void ob1_unexpected_shrank(struct ob1 *pml, size_t bytes);
void ob1_on_throttle(struct ob1 *pml, const struct st_frag *frag);

/* message.c: messages kept */
struct ob1_msg *ob1_msg_make(struct ob1 *pml, const struct ob1_arrival *a, const struct st_frag *frag, bool *kept);
void ob1_msg_free(struct ob1 *pml, struct ob1_msg *msg);
void ob1_msg_drop_payload(struct ob1 *pml, struct ob1_msg *msg);

/* recv_deliver.c, recv_slow.c */
enum st_deliver ob1_deliver(void *arg, const struct st_frag *frag);
enum st_deliver ob1_deliver_slow(struct ob1 *pml, const struct st_frag *frag);
enum st_deliver ob1_deliver_unexpected(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p,
                                       const struct st_frag *frag);
void ob1_deliver_odd(struct ob1 *pml, struct ob1_req *req, const struct st_frag *frag, int src, int tag);
void ob1_deliver_held(struct ob1 *pml, struct ob1_comm *c, struct ob1_cpeer *p);
void ob1_deliver_msg(struct ob1 *pml, struct ob1_comm *c, struct ob1_msg *msg);
void ob1_recv_begin(struct ob1 *pml, struct ob1_req *req, struct ob1_cpeer *p, const struct ob1_arrival *a,
                    struct ob1_stream *stream);
void ob1_recv_begin_msg(struct ob1 *pml, struct ob1_req *req, struct ob1_msg *msg); /* frees msg */

/* recv.c */
int ob1_recv(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);
int ob1_recv_locked(strata_comm_t *comm, void *buf, size_t len, int src, int tag, strata_status_t *status);
int ob1_irecv(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
int ob1_irecv_locked(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
int ob1_imrecv(strata_message_t *msg, const struct st_pml_recv *a, strata_request_t **req);
int ob1_recv_start(struct ob1 *pml, struct ob1_req *req);

/* send_fast.c, send.c */
int ob1_send(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode);
int ob1_isend(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
int ob1_send_locked(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode);
int ob1_isend_locked(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
/* The answer of an attempt to send for which the transport had no room: the message is queued, not tried once more. */
#define OB1_REFUSED 2
int ob1_send_slow(strata_comm_t *comm, const void *buf, size_t len, int dst, int tag, strata_mode_t mode, bool refused);
int ob1_isend_slow(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req, bool refused);
int ob1_send_start(struct ob1 *pml, struct ob1_req *req, bool refused);
int ob1_send_buffered_start(struct ob1 *pml, struct ob1_req *req); /* a persistent one of buffered mode */
void ob1_send_orphan(struct ob1 *pml, struct ob1_comm *c);
/* send_window.c: a packing error is returned as it is. */
int ob1_send_window(struct ob1 *pml, struct st_btl_endpoint *ep, const void *hdr, uint32_t hdr_len,
                    const strata_data_t *data, uint64_t offset, uint32_t len);

/* A request's first fragment: STRATA_OK or STRATA_ERR_AGAIN. */
int ob1_first_run(struct ob1 *pml, struct ob1_req *req);
void ob1_first_queue(struct ob1 *pml, struct ob1_req *req);
int ob1_firsts(void *arg, struct st_peer *shared, uint32_t *busy); /* struct st_client.firsts */

/* coalesce.c */
/* Whether a message that has been started should wait for others to go along with. */
bool ob1_holds(const struct ob1 *pml, const struct ob1_req *req);
/* What waits and may go together, if the path is not busy, which it sets on STRATA_ERR_AGAIN. How many went. */
int ob1_coalesce(struct ob1 *pml, struct ob1_peer *peer, uint32_t *busy);
void ob1_on_batch(struct ob1 *pml, const struct st_frag *frag);

/* stream.c */
int ob1_stream_run(void *arg, struct st_work *w); /* sender: the rest of a stream */
extern const struct st_work_ops ob1_stream_work;
struct ob1_stream *ob1_stream_expect(struct ob1 *pml, struct ob1_peer *peer, const struct ob1_arrival *a);
bool ob1_stream_attach(struct ob1 *pml, struct ob1_stream *st, struct ob1_req *req);
void ob1_stream_data(struct ob1 *pml, const struct st_frag *frag);
void ob1_stream_add(struct ob1 *pml, struct ob1_stream *st, uint32_t offset, const void *data, uint32_t len);
void ob1_stream_drop(struct ob1 *pml, struct ob1_stream *st);

/* rendezvous: stripe.c, rndv_get.c, rndv_put.c, pipeline.c, rndv.c */
void ob1_rndv_begin(struct ob1 *pml, struct ob1_req *req, struct ob1_peer *peer, const struct ob1_arrival *a);
void ob1_fetch(struct ob1 *pml, struct ob1_req *req, uint64_t offset, uint64_t length);
void ob1_fetch_again(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
int ob1_get_begin(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
int ob1_put_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
/* What to do about a range that could not be registered, with rc: fragments, or the message fails. */
void ob1_not_registered(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length, int rc);
int ob1_pipeline_ask(struct ob1 *pml, struct ob1_req *req, uint8_t path, uint64_t offset, uint64_t length);
void ob1_on_put(struct ob1 *pml, const struct st_frag *frag);
void ob1_on_cts(struct ob1 *pml, const struct st_frag *frag);
void ob1_on_data(struct ob1 *pml, const struct st_frag *frag);
void ob1_on_fin(struct ob1 *pml, const struct st_frag *frag);
void ob1_on_ack(struct ob1 *pml, const struct st_frag *frag);
/* The send that a receiver's request is about, the range checked; NULL when there is no such thing. */
struct ob1_req *ob1_request_to(struct ob1 *pml, const struct st_frag *frag, const struct wire_request *h);
void ob1_put_answered(struct ob1 *pml, struct ob1_piece *piece, int status, uint64_t bytes);
void ob1_send_moved(struct ob1 *pml, struct ob1_req *req, uint64_t bytes); /* sender: so much is done with */

/* task.c */
struct ob1_task *ob1_task_make(struct ob1 *pml, struct ob1_req *req, struct ob1_peer *peer, uint8_t path,
                               const struct st_work_ops *ops, bool rdma, uint64_t offset, uint64_t length);
void ob1_task_drop(void *arg, struct st_work *w, int rc); /* st_work_ops.drop of tasks */
void ob1_task_free(struct ob1 *pml, struct ob1_task *t);
void ob1_task_go(struct ob1 *pml, struct ob1_task *t); /* runs it, queues what is left */
struct ob1_piece *ob1_piece_make(struct ob1 *pml, struct ob1_task *t, uint64_t offset, uint64_t length);
void ob1_piece_free(struct ob1 *pml, struct ob1_piece *piece);
int ob1_piece_register(struct ob1_piece *piece, struct st_btl *btl, enum st_btl_use use);
/* For put, get and registration. */
ST_INLINE struct st_btl_endpoint *ob1_path(const struct ob1_peer *peer, uint8_t path)
{
    return st_peer_path(peer->shared, path);
}

/* For active messages. */
ST_INLINE struct st_btl_endpoint *ob1_way(const struct ob1_peer *peer, uint8_t path)
{
    return st_peer_way(peer->shared, path);
}

/* control.c */
void ob1_control(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, const void *hdr, uint32_t hdr_len,
                 const void *data, uint32_t len);
void ob1_control_fin(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, enum ob1_type type, uint64_t id,
                     uint64_t bytes, int status);

/* fin.c */
void ob1_fin_soon(struct ob1 *pml, struct ob1_peer *peer, uint8_t path, uint64_t id, uint64_t bytes);
void ob1_fins_send(struct ob1 *pml);
int ob1_attend(void *arg); /* the same, as struct st_client.attend */

/* request.c */
struct ob1_req *ob1_req_make(struct ob1 *pml, enum ob1_kind kind, strata_comm_t *comm, void *storage,
                             strata_complete_fn fn, void *arg);
void ob1_req_end_slow(struct ob1 *pml, struct ob1_req *req);
void ob1_req_fail(struct ob1 *pml, struct ob1_req *req, int rc);
void ob1_req_try_end(struct ob1 *pml, struct ob1_req *req); /* ends it when nothing is left to do */
void ob1_request_free(strata_request_t *req);
void ob1_run_callbacks(void *arg); /* struct st_client.outside */

/* probe.c, cancel.c, persistent.c, bsend.c */
int ob1_iprobe(strata_comm_t *comm, int src, int tag, int *found, strata_message_t **msg, strata_status_t *status);
int ob1_cancel(strata_request_t *req);
int ob1_send_init(strata_comm_t *comm, const struct st_pml_send *a, strata_request_t **req);
int ob1_recv_init(strata_comm_t *comm, const struct st_pml_recv *a, strata_request_t **req);
int ob1_start(strata_request_t *req);
int ob1_buffer_attach(struct st_pml *pml, void *buffer, size_t size);
int ob1_buffer_detach(struct st_pml *pml, void **buffer, size_t *size);
/* Copies a message into the attached buffer; *block names it, its first bytes are the data. STRATA_ERR_BUFFER. */
int ob1_bsend_copy(struct ob1 *pml, const strata_data_t *data, void **block, void **copy);
void ob1_bsend_put(struct ob1 *pml, void *block);

/* wait.c */
bool ob1_drained(void *arg); /* struct st_client.drained */
void ob1_wait_new(struct ob1 *pml, struct ob1_req *req);
void ob1_wait_req(struct ob1 *pml, struct ob1_req *req); /* when it has been polled for already */

/* failure.c */
void ob1_peer_failed(void *arg, struct st_peer *shared); /* struct st_client.peer_failed */
/* Something that concerns a peer has failed so that nothing more can be done for it: to be told in the next round. */
ST_INLINE void ob1_peer_fails(struct ob1 *pml, int rank, int rc, const char *reason)
{
    st_worker_peer_failed(pml->head.worker, rank, rc, reason);
}

/* report.c */
char *ob1_describe(struct st_pml *pml, int rank);
void ob1_mem_report(struct st_pml *pml, st_mem_line_fn line, void *arg);
#define OB1_N_COUNTERS (7 + OB1_P_COUNT)
extern const struct st_counter ob1_counters[OB1_N_COUNTERS];
void ob1_count(const struct st_counting *counting, uint64_t *value);
void ob1_queues(const strata_comm_t *comm, uint64_t *unexpected, uint64_t *posted);

/* component.c */
int ob1_make(strata_t *s, const struct ob1_config *config, struct st_worker *worker, struct st_pml **out);

#endif

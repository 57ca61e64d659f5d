/* btl_shuffle: a transport for tests, between the contexts of one process, that does everything a transport is allowed
 * to do and real ones do seldom. See README.md. */
#ifndef BTL_SHUFFLE_H
#define BTL_SHUFFLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <strata/sdk/btl_hints.h>
#include <strata/sdk/list.h>

struct shuffle_config {
    int64_t seed;
    int64_t rails;
    int64_t window;
    int64_t delay;
    int64_t again_percent;
    int64_t crowded_percent;
    int64_t keep_percent;
    int64_t leave_percent;
    int64_t unsupported_percent;
    int64_t async_percent;
    int64_t piece;
    int64_t zcopy_percent;
    size_t zcopy_min;
    size_t eager_limit;
    size_t max_send;
    size_t stream_limit;
    size_t rdma_min;
    size_t rdma_pipeline;
    bool far_odd, get, put, needs_reg, gather, unsupported_put;
    int64_t fail_rank;
    int64_t fail_after;
    int64_t break_after;
    int64_t break_rails;
    int64_t mend_polls;
    bool break_silent;
};

#define SHUFFLE_CUTS 64u /* ranks by which cuts are counted, modulo */

/* A fragment in flight: header, then payload. */
struct packet {
    struct st_node node;
    int src;
    enum st_am am;
    uint32_t hdr_len, len;
    uint32_t delay;  /* polls of the receiver to wait */
    uint32_t cuts;   /* of its connection when it was sent */
    uint64_t number; /* in the order of arrival */
    unsigned char bytes[];
};

struct region {
    struct st_node node;
    uint64_t id;
    char *base;
    size_t len;
};

/* What peers reach: shared between threads, counted, locked by its own mutex. */
struct port {
    pthread_mutex_t lock;
    uint32_t refs;
    bool closed;
    struct st_node arrived;      /* packets, under lock */
    struct st_node regions;      /* registration table, under lock */
    uint32_t cuts[SHUFFLE_CUTS]; /* by sender: how often its connection to this port was cut; under lock */
    _Atomic(uint32_t) word;      /* raised at each arrival; sleepers wait on it */
    _Atomic(uint32_t) sleeping;
    int event_fd; /* the same for who sleeps on descriptors */
};

/* A get or put under way, or a message whose data stays where it is; executed by its initiator's progress. */
struct transfer {
    struct st_node node;
    struct endpoint *ep; /* NULL: disconnected since */
    struct st_btl_op *op;
    uint64_t far_id, near_id; /* registrations */
    uint32_t cap;             /* ST_BTL_GET or ST_BTL_PUT; 0: a message */
    struct packet *packet;    /* of the message, without its data; else NULL */
    char *to;
    const char *from;
    size_t left;
    uint32_t delay;
    int verdict; /* to report in the end */
};

struct endpoint {
    struct st_btl_endpoint super;
    struct st_node node;
    struct port *port;
    uint64_t sent;
    uint64_t break_at; /* use at which it breaks; 0: never */
    uint32_t cuts;     /* of the port when this was connected */
    bool dead;
    bool cut, told; /* dead by a cut; which the upper layer knows */
};

struct module {
    struct st_btl super;
    const struct shuffle_config *config;
    struct port *port;
    int rail, rank;
    uint64_t rng;
    struct st_node endpoints;
    struct st_node pool; /* taken from the port, not yet delivered */
    uint32_t n_pool;
    uint64_t n_collected;
    struct st_node transfers;
    struct st_node batch;         /* transfers that the present poll has still to look at */
    struct st_node kept;          /* packets that clients keep, oldest first: st_btl_kept.node */
    struct packet *now;           /* being delivered, or NULL */
    struct st_btl_kept *now_kept; /* keeps it, or NULL */
    size_t bytes;                 /* of packets that this module holds */
    uint64_t next_region;
    bool failure_told;
    bool refused;              /* something, since the last sleep */
    uint64_t polls, mended_at; /* no connection is made anew before that poll */
};

/* What a rank publishes for each rail: meaningful inside one process only. */
struct address {
    uint64_t magic;
    int64_t pid;
    struct port *port;
};
#define SHUFFLE_MAGIC 0x5348554646ull

extern const struct st_component st_component_btl_shuffle;

struct port *port_create(void);
void port_get(struct port *port);
void port_put(struct port *port);
void port_wake(struct port *port);

void shuffle_key(char *key, size_t size, int rail);
uint32_t draw(struct module *m, uint32_t below);
bool chance(struct module *m, int64_t percent);
bool refuses(struct module *m); /* a call, by again_percent */

int shuffle_reach(struct st_btl *btl, int rank);
int shuffle_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
void shuffle_disconnect(struct st_btl_endpoint *ep);
/* STRATA_ERR_PEER when the injected fault has struck, else counts one use of the endpoint. */
int endpoint_use(struct endpoint *e);

/* Whether the connection was cut, by either end; the endpoint is dead then. */
bool endpoint_cut(struct endpoint *e);
/* Looks for endpoints that were cut, now and then, and tells of them. */
int endpoints_tell(struct module *m);

int shuffle_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                 uint32_t len);
int shuffle_send_payload(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len,
                         const struct st_payload *payload);
int shuffle_send_zcopy(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                       uint32_t len, struct st_btl_op *op);
void packet_arrive(struct endpoint *e, struct packet *p);
int deliver_some(struct module *m);
bool shuffle_keep(struct st_btl *btl, const void *data, uint32_t len, struct st_btl_kept *kept);
void shuffle_release(struct st_btl *btl, struct st_btl_kept *kept);
/* Takes packets back that clients keep: the oldest one, by leave_percent; all of a peer. */
void leave_one(struct module *m);
void leave_all_of(struct module *m, int rank);
bool packets_pending(struct module *m);

int shuffle_get(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                struct st_btl_reg *reg, struct st_btl_op *op);
int shuffle_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *remote_key, size_t len,
                struct st_btl_reg *reg, struct st_btl_op *op);
int shuffle_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
void shuffle_dereg(struct st_btl *btl, struct st_btl_reg *reg);
/* Sends p with len bytes from data, some polls from now. False: no memory. */
bool transfer_message(struct endpoint *e, struct packet *p, const char *data, struct st_btl_op *op);
int transfer_some(struct module *m);
void transfers_orphan(struct module *m, struct endpoint *e);

#endif

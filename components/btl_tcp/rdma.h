/* Puts and gets: frames of their own beside messages, in pieces, so that messages pass between them. What is put is
 * sent from the caller's memory and received into the registered memory; a put ends when the peer has said that all of
 * it is written. Docs: docs/design/btl_tcp.md. */
#ifndef TCP_RDMA_H
#define TCP_RDMA_H

#include <strata/sdk/btl_rdma.h>
#include "tcp.h"

#define TCP_OPS      64u          /* of a peer under way, in each direction, puts and gets together */
#define TCP_PIPELINE (1u << 20)   /* bytes of a piece of a longer message */
#define TCP_SHARED   (128u << 10) /* bytes of a piece by the first connection: messages wait behind it */
#define TCP_TURN     (512u << 10) /* bytes sent to a peer in one round of progress, about */

/* Memory that peers may name by a key. */
struct tcp_registered {
    char *base; /* NULL: the entry is free */
    size_t len;
    uint64_t secret;
    bool writable;
    uint32_t next_free;
};

enum tcp_job_kind { TCP_JOB_PUT, TCP_JOB_GET, TCP_JOB_ANSWER };

/* A put or get of this process, or the answer to a get of the peer's. */
struct tcp_job {
    struct st_node node;
    uint8_t kind; /* enum tcp_job_kind */
    bool notify;
    int rc;                 /* when it has ended */
    uint32_t id;            /* TCP_JOB_PUT, all sent: its number among those of the connection; else that of the get */
    uint32_t word;          /* the notice */
    char *local;            /* of the caller */
    uint64_t remote;        /* address in the memory of `key` */
    struct tcp_key key;     /* the peer's; TCP_JOB_ANSWER: ours */
    size_t len, at;         /* at: bytes that were sent, or have come */
    struct st_btl_op *user; /* TCP_JOB_ANSWER: NULL */
};

/* A piece that is being received. */
struct tcp_take {
    struct tcp_move move;
    bool put;           /* else of an answer */
    uint32_t len, have; /* bytes of the payload */
    uint8_t pad;        /* bytes behind it */
};

enum tcp_zerocopy_mode {
    TCP_ZEROCOPY_OPEN,  /* no payload was sent yet */
    TCP_ZEROCOPY_TRIAL, /* payloads go by turns with and without a copy, and are timed */
    TCP_ZEROCOPY_ON,
    TCP_ZEROCOPY_NOT /* not wanted, not known to the kernel, copied all the same, or slower */
};

/* Sending without a copy by the present connection (zerocopy.c). */
struct tcp_zerocopy {
    uint8_t mode;             /* enum tcp_zerocopy_mode */
    uint32_t pending;         /* calls whose completions were not read */
    uint64_t ns[2], bytes[2]; /* of the trial: time in calls; bytes taken. 0: copied; 1: without */
};

/* A peer's puts and gets; made for the first one. */
struct tcp_rdma {
    struct tcp_peer *peer;
    struct st_node busy;       /* in the module's list while `asks` or `out` has jobs, or `due` or `say` */
    struct st_node asks, gets; /* gets to be asked for, and asked for */
    struct st_node out, sent;  /* puts and answers with something to send; puts sent to the end */
    uint32_t n_ops, n_answers; /* jobs of this process; of the peer */
    uint32_t n_sent, n_taken;  /* puts sent to the end, and received, by this connection */
    uint32_t next_id;
    uint8_t say;  /* TCP_ASK_BULK or TCP_NO_BULK is to be sent; else 0 */
    uint8_t due;  /* the peer is to be told of n_taken: 1: by the next frame; 2: now */
    bool refused; /* a message was refused: it goes before the next piece */
    bool more;    /* a piece came, and others of it follow */
    /* A frame that has gone in part. */
    struct tcp_job *sending;
    struct {
        struct tcp_frame frame;
        struct tcp_move move;
    } head;
    const char *payload;
    bool without; /* a copy in the kernel: head and payload leave one by one */
    struct tcp_zerocopy zerocopy;
    uint32_t len, gone;     /* of the payload; of the frame */
    struct tcp_conn *taker; /* by which `take` comes; NULL: none */
    struct tcp_take take;
};

extern const struct st_btl_rdma tcp_rdma_ops;

/* rdma_reg.c */
int tcp_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out);
void tcp_dereg(struct st_btl *btl, struct st_btl_reg *reg);
/* Bytes of registered memory, or NULL: the key is of no registration, they are not all in it, or may not be written. */
char *tcp_reg_find(const struct tcp_module *m, const struct tcp_key *key, uint64_t address, uint64_t len, bool write);

/* rdma_end.c */
void tcp_rdma_init(struct tcp_module *m);
void tcp_rdma_fini(struct tcp_module *m);
void tcp_rdma_free(struct tcp_peer *p);
/* NULL: no memory. */
struct tcp_rdma *tcp_rdma_of(struct tcp_module *m, struct tcp_peer *p);
/* A new connection of the pair is up. */
void tcp_rdma_renew(struct tcp_peer *p);
/* A connection that was up is closed. */
void tcp_rdma_leave(struct tcp_peer *p, const struct tcp_conn *c);
/* The path is lost, and has been reported: what is under way ends with STRATA_ERR_PEER. */
void tcp_rdma_lost(struct tcp_peer *p);
/* Operations of this process end; of `notices` only puts with notice. */
void tcp_rdma_end_ops(struct tcp_rdma *r, bool notices, int rc);
/* The peer has said goodbye: its notices are for nobody any more. */
void tcp_rdma_left(struct tcp_peer *p);
/* The job has ended; it is reported by the next progress. */
void tcp_job_end(struct tcp_module *m, struct tcp_rdma *r, struct tcp_job *job, int rc);

/* rdma.c */
int tcp_rdma_progress(struct tcp_module *m);
bool tcp_rdma_may_sleep(const struct tcp_module *m);

/* rdma_out.c */
/* Sends pieces, about TCP_TURN bytes. Returns frames. */
int tcp_rdma_run(struct tcp_module *m, struct tcp_rdma *r);
/* Sends the rest of a frame of a job; true: no part of a frame is left. */
bool tcp_rdma_go_on(struct tcp_module *m, struct tcp_conn *c);
/* Copies that rest, so that the job's memory is not needed any more; false: no memory is left for it. */
bool tcp_rdma_keep_rest(struct tcp_module *m, struct tcp_peer *p);
/* Tells the peer which of its puts have been written, and of the second connection, if that is due. */
void tcp_rdma_say(struct tcp_module *m, struct tcp_rdma *r);
/* Whether something of it can be sent now. */
bool tcp_rdma_has_room(const struct tcp_rdma *r);

/* zerocopy.c */
#define TCP_ZEROCOPY_OFF SIZE_MAX
/* Reads "off", "auto" or a length with k or m: *shortest payload that is sent without a copy, 0 where the program finds
 * out. */
bool tcp_zerocopy_parse(const char *text, size_t *shortest);
/* Whether the next payload, of `len` bytes, goes without a copy. */
bool tcp_zerocopy_wants(struct tcp_module *m, struct tcp_conn *c, struct tcp_rdma *r, uint32_t len);
/* As st_socket_sendmsg, with a copy or without: then the memory must stay as it is until the peer has it. */
ssize_t tcp_zerocopy_send(struct tcp_module *m, struct tcp_conn *c, struct tcp_rdma *r, const struct msghdr *msg,
                          bool without);
/* Reads what the kernel says of calls without a copy. */
void tcp_zerocopy_reap(struct tcp_module *m, const struct tcp_conn *c);

/* rdma_in.c. NULL, or what is wrong. */
/* The other side has written so many puts. */
const char *tcp_rdma_acked(struct tcp_module *m, struct tcp_peer *p, uint32_t done);
const char *tcp_rdma_asked(struct tcp_module *m, struct tcp_conn *c, const struct tcp_move *move);
/* Takes a piece of which `n` bytes from the frame's beginning have come. *used: bytes of these; 0: too few. */
const char *tcp_take_begin(struct tcp_module *m, struct tcp_conn *c, const char *bytes, uint32_t n, uint32_t *used);
/* Where the rest of the piece goes: its length; *to NULL: nowhere. */
const char *tcp_take_where(struct tcp_module *m, struct tcp_conn *c, char **to, uint32_t *len);
/* Counts bytes of the payload that have come. */
void tcp_take_came(struct tcp_module *m, struct tcp_conn *c, uint32_t n);

static inline bool tcp_is_piece(const struct tcp_frame *f)
{
    return f->kind == TCP_PUT || f->kind == TCP_GOT;
}

static inline bool tcp_is_taking(const struct tcp_conn *c)
{
    return c->peer->rdma && c->peer->rdma->taker == c;
}

/* More pieces are expected by the connection: they are not read into a buffer. */
static inline bool tcp_expects_pieces(const struct tcp_conn *c)
{
    const struct tcp_rdma *r = c->peer->rdma;

    if (c->peer->bulk && c->peer->bulk->state == TCP_UP && !c->bulk)
        return false;
    return r && (r->more || !st_list_empty(&r->gets));
}

static inline uint32_t tcp_rdma_done(const struct tcp_peer *p)
{
    return p->rdma ? p->rdma->n_taken : 0;
}

/* A frame has gone that says tcp_rdma_done. */
static inline void tcp_rdma_told(const struct tcp_peer *p)
{
    if (p->rdma)
        p->rdma->due = 0;
}

static inline void tcp_rdma_refused(const struct tcp_peer *p)
{
    if (p->rdma)
        p->rdma->refused = true;
}

/* Operations of this process are under way. */
static inline bool tcp_rdma_waits(const struct tcp_peer *p)
{
    return p->rdma && p->rdma->n_ops > 0;
}

static inline bool tcp_rdma_due(const struct tcp_module *m)
{
    return !st_list_empty(&m->busy) || !st_list_empty(&m->ended);
}

static inline void tcp_rdma_make_busy(struct tcp_module *m, struct tcp_rdma *r)
{
    if (st_list_empty(&r->busy))
        st_list_append(&m->busy, &r->busy);
}

#endif

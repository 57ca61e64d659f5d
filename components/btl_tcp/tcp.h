/* A module of btl_tcp, for one link of each pair: a listener, peers, and their connections. */
#ifndef TCP_H
#define TCP_H

#include <strata/sdk/btl.h>
#include <strata/sdk/list.h>
#include <strata/sdk/rank_table.h>
#include <strata/sdk/slab.h>
#include <sys/socket.h>
#include "address.h"
#include "params.h"
#include "proof.h"

#define TCP_HOT        8u /* connections that are read without asking epoll */
#define TCP_MS         1000000ull
#define TCP_DIAL_NEXT  (200 * TCP_MS) /* without an answer the next address is dialled as well */
#define TCP_DIAL_AGAIN (50 * TCP_MS)  /* after a round in which all failed; doubled each time */
#define TCP_LOOKS      8u             /* at a silent peer, in half of the time-out */
#define TCP_PATIENCE   6u             /* times that the limit of a step is doubled for a silent peer, at most */
#define TCP_REFUSALS   6u             /* rounds in which all addresses refuse: nobody listens any more */
#define TCP_HANG_UPS   16u            /* of callees without a proof, beside the time: none of them is the peer */

struct tcp_peer;
struct tcp_dial;

enum tcp_state {
    TCP_DIALLED,    /* the kernel connects */
    TCP_SAID_HELLO, /* dialler: waits for CHALLENGE */
    TCP_ANSWERED,   /* dialler of the higher rank: waits for VERDICT */
    TCP_ACCEPTED,   /* listener: waits for HELLO */
    TCP_CHALLENGED, /* listener: waits for RESPONSE */
    TCP_CHOSEN,     /* lower rank: this is the connection; waits for READY. Dialler of a second one: likewise */
    TCP_UP,
    TCP_DEAD /* closed; freed at the end of the next progress */
};

/* A socket. */
struct tcp_conn {
    struct st_node node;   /* in the module's list of connections, or of dead ones */
    struct tcp_peer *peer; /* NULL: a caller that has not proved who it is */
    int fd;
    uint8_t state; /* enum tcp_state */
    bool dialled;  /* by us */
    bool blocked;  /* sends are refused until epoll says that there is room */
    bool broken;   /* for sending; what has arrived is read all the same */
    bool hot;
    bool bulk;         /* the second one of its pair (bulk.c) */
    bool ended;        /* of the second: its goodbye was read */
    bool held;         /* of the first: a goodbye has come, and waits for the end of the second */
    uint16_t quiet;    /* reads in a row that found nothing */
    uint8_t address;   /* dialled: place in the peer's card */
    uint8_t silent;    /* looks in a row at which the peer's kernel had not answered */
    uint8_t skip;      /* bytes behind a piece of a put or get that have not come yet */
    uint32_t epoch;    /* number of the pair's connection; with TCP_CHOSEN and TCP_UP */
    uint64_t deadline; /* ns; 0: none */
    /* Handshake: the message that is being read, and what both have said. */
    uint32_t n_in;
    union {
        struct tcp_head head;
        struct tcp_hello hello;
        struct tcp_challenge challenge;
        struct tcp_response response;
        uint8_t bytes[64];
    } in;
    struct tcp_said said;
    /* Frames. */
    char *rx;        /* module's rx_size bytes while it holds a part of a frame, else NULL */
    uint32_t rx_len; /* bytes there */
    char *out;       /* the rest of a frame that the socket did not take, or NULL */
    uint32_t out_at, out_len;
};

/* A rank, from the first contact until the module is closed. */
struct tcp_peer {
    struct st_btl_endpoint ep; /* first */
    struct tcp_conn *conn;     /* the one of the pair: TCP_CHOSEN or TCP_UP, or NULL */
    struct tcp_conn *bulk;     /* beside it, in any state (bulk.c); NULL: none */
    struct tcp_dial *dial;     /* dial.h: while a connection is wanted and there is none */
    struct st_node dialling;   /* while `dial`: in the module's list of that name, or in `waiting` */
    uint8_t address[16];       /* the other end's of the last connection; zeroes: there was none */
    uint32_t epoch;            /* connections of the pair that are over, as far as we know */
    uint32_t bandwidth;        /* MB/s, of the path beside those of other links; 0: before the first connect */
    struct tcp_rdma *rdma;     /* puts and gets (rdma.h); NULL: there was none yet */
    uint8_t trying;            /* by place in its card: addresses of connections dialled and not decided */
    uint8_t taken;             /* of these, where HELLO was said: the kernel there has taken the call */
    uint8_t silent;            /* handshakes in a row of which a step was not answered in time, up to TCP_PATIENCE */
    bool far;                  /* on another machine */
    bool failed;               /* reported; sends are refused. Until the next connect, unless `gone` */
    bool gone;                 /* failed for good */
    bool left;                 /* it has said goodbye */
    uint8_t way;               /* enum tcp_way (bulk.h) */
    uint16_t in_turn;          /* messages sent in `turn` */
    uint32_t turn;             /* of the module, at the last message sent */
};

static_assert(sizeof(struct tcp_peer) + sizeof(struct tcp_conn) <= 320, "memory of a connected peer");

struct tcp_counts {
    uint64_t blocked, refused, duplicates, dials, broken, puts, gets, bulk, zerocopy, copied;
};

struct tcp_module {
    struct st_btl btl; /* first */
    struct st_rte *rte;
    const struct tcp_params *par;
    struct tcp_card card;                /* ours */
    int listener[TCP_ADDRESSES], events; /* descriptors; -1: none */
    uint32_t n_listeners;                /* at one port: one at all addresses, or one at each of the card's */
    struct st_node conns, dead;
    struct st_node dialling, waiting; /* struct tcp_peer: that are dialled; that will be, in order */
    uint64_t dial_at;                 /* ns: nothing of `dialling` and `waiting` is due before */
    struct st_rank_table peers;       /* struct tcp_peer */
    struct tcp_conn *hot[TCP_HOT];
    uint32_t n_hot, n_strangers, n_conns, n_blocked, n_peers;
    uint32_t n_meeting; /* connections whose handshake has not ended */
    uint32_t n_young;   /* of `dialling`: for less than TCP_DIAL_NEXT */
    uint32_t turn;      /* counts progress */
    uint32_t n_crowded;
    uint64_t burst_ns;                 /* when a peer got its second message of this turn; 0: none did */
    struct tcp_peer *crowded[TCP_HOT]; /* that got a burst since the last progress */
    uint32_t frame_max, rx_size;       /* bytes of the longest frame; of a receive buffer */
    char *spare;                       /* rx_size bytes, or NULL */
    uint64_t looked;                   /* ns: of the last look at the time */
    uint64_t swept;                    /* ns: deadlines were looked at */
    uint64_t probed;                   /* ns: the kernel was asked which peers are silent */
    uint64_t accept_at;                /* ns: the listener is asked again; 0: it is asked now */
    uint64_t n_rx, n_out;              /* buffers held */
    size_t zerocopy;                   /* shortest payload sent without a copy; 0, TCP_ZEROCOPY_OFF: see zerocopy.c */
    uint8_t link;                      /* of each pair this module has the link of this number */
    struct tcp_pair pair;              /* the last one that was asked for */
    bool told_exhausted, closing;
    /* Puts and gets (rdma.h). */
    struct tcp_registered *regs; /* by tcp_key.index */
    uint32_t n_regs, free_reg;   /* entries; the first free one, or n_regs */
    uint32_t n_rdma;             /* struct tcp_rdma there are */
    uint64_t secrets;            /* state of their generator */
    struct st_slab jobs;         /* struct tcp_job */
    struct st_node busy;         /* struct tcp_rdma with something to send */
    struct st_node ended;        /* struct tcp_job to be reported */
    struct tcp_counts count;
    struct st_counting counting;
};

/* listen.c */
/* Everywhere: at all addresses of the machine; else at those of the card. */
int tcp_listen(struct tcp_module *m, bool everywhere, char *why, size_t why_size);
void tcp_listen_end(struct tcp_module *m);
void tcp_listen_pause(struct tcp_module *m, uint64_t ns);
void tcp_listen_again(struct tcp_module *m);
void tcp_accept(struct tcp_module *m);

/* conn.c: NULL where there is no memory or no room in the poll set; the descriptor is closed then. */
struct tcp_conn *tcp_conn_make(struct tcp_module *m, int fd, struct tcp_peer *peer, uint8_t state);
/* Closes it; the struct stays until tcp_conn_bury. */
void tcp_conn_close(struct tcp_module *m, struct tcp_conn *c);
/* Closes it because of an error or the peer's end, and does what follows from that. */
void tcp_conn_lost(struct tcp_module *m, struct tcp_conn *c, const char *why);
void tcp_conn_bury(struct tcp_module *m);
void tcp_conn_watch(struct tcp_module *m, const struct tcp_conn *c); /* asks epoll for what c waits for */
void tcp_conn_over(const struct tcp_conn *c);                        /* its end begins a new epoch of the pair */
void tcp_conn_up(struct tcp_module *m, struct tcp_conn *c);          /* it has become the connection of the pair */

/* meet.c: the handshake goes on. Returns events. */
int tcp_meet_writable(struct tcp_module *m, struct tcp_conn *c);
int tcp_meet_readable(struct tcp_module *m, struct tcp_conn *c);
/* Before a connection is closed for its age: takes what has arrived. True: the handshake goes on, or c is closed. */
bool tcp_meet_late(struct tcp_module *m, struct tcp_conn *c);
/* The time of a step is over: closes c. A peer that was called is called again. */
void tcp_meet_expired(struct tcp_module *m, struct tcp_conn *c);
/* Whether the other end has closed it behind what was read: it waits for no answer any more. */
bool tcp_conn_is_over(const struct tcp_conn *c);

/* peer.c */
int tcp_peer_get(struct tcp_module *m, int rank, struct tcp_peer **out);
/* The peer's connection is lost; where connections are not made again that is for good. */
void tcp_peer_lost(struct tcp_peer *p, const char *why);
/* The peer will never be reached again. */
void tcp_peer_gone(struct tcp_peer *p, const char *why);
int tcp_connect(struct st_btl *btl, int rank, struct st_btl_endpoint **out);
/* A slower link has a smaller weight. */
void tcp_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts);

/* rdma.c */
void tcp_disconnect(struct st_btl_endpoint *ep);

/* send.c */
int tcp_send(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
             uint32_t len);
extern const struct st_btl_hints tcp_hints;
/* Sends what is left of a frame. */
void tcp_flush(struct tcp_module *m, struct tcp_conn *c);
/* Sends are refused from now on until there is room, or no longer. */
void tcp_send_block(struct tcp_module *m, struct tcp_conn *c, bool blocked);
/* Nothing more is sent by the connection; what has come is read, and then the end. */
void tcp_send_end(struct tcp_module *m, struct tcp_conn *c);
/* The connection cannot be sent by any more. */
void tcp_send_broken(struct tcp_module *m, struct tcp_conn *c, const char *why);
/* Without a connection: STRATA_ERR_PEER or STRATA_ERR_AGAIN. */
int tcp_send_unconnected(struct tcp_module *m, struct tcp_peer *p);
/* Keeps the rest of a frame, which is short or has room; false: no memory. */
bool tcp_keep_room(struct tcp_module *m, struct tcp_conn *c, uint32_t n);
bool tcp_keep(struct tcp_module *m, struct tcp_conn *c, const void *bytes, uint32_t n);

/* receive.c */
int tcp_receive(struct tcp_module *m, struct tcp_conn *c); /* reads once, delivers whole frames; how many */
/* What is at `bytes`: 0: not a whole frame; its length; -1: no frame. */
int64_t tcp_frame_check(const struct tcp_module *m, const char *bytes, uint32_t n);

/* socket.c */
void tcp_set_socket(const struct tcp_module *m, int fd);
void tcp_set_keepalive(const struct tcp_module *m, int fd);
/* silence.c: ends connections whose peers have been silent for too long. */
void tcp_silence_look(struct tcp_module *m, uint64_t now);

/* progress.c, close.c */
int tcp_progress(struct st_btl *btl);
int tcp_arm(struct st_btl *btl, struct st_btl_wait *w);
void tcp_disarm(struct st_btl *btl);
void tcp_close(struct st_btl *btl);

/* report.c */
#define TCP_N_COUNTERS 10
extern const struct st_counter tcp_counters[TCP_N_COUNTERS];
void tcp_count(const struct st_counting *counting, uint64_t *value);
void tcp_mem_report(struct st_btl *btl, st_mem_line_fn line, void *arg);
char *tcp_describe(struct st_btl *btl, struct st_btl_endpoint *ep);

/* component.c: makes a module; what open does, for tests as well. */
int tcp_module_make(strata_t *s, const struct st_component *c, const struct tcp_params *par, uint8_t link,
                    struct tcp_module **out, char *why, size_t why_size);
extern const struct st_btl_ops tcp_ops;

static inline struct tcp_module *tcp_of(struct st_btl *btl)
{
    return (struct tcp_module *)btl;
}

static inline bool tcp_mends(const struct tcp_module *m)
{
    return (m->btl.caps & ST_BTL_MENDS) != 0;
}

/* Half of the time that a peer may be out of reach. */
static inline uint64_t tcp_half_timeout_ms(const struct tcp_module *m)
{
    return (uint64_t)m->par->timeout_ms / 2;
}

#endif

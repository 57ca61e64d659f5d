/* Connections: made and kept by a state machine over out-of-band messages, closed in agreement, evicted; and the cards
 * that say how a peer is reached. */
#ifndef IB_CONN_H
#define IB_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/list.h>
#include "params.h"
#include "wire.h"

struct ib_handle;
struct ib_method;
struct ib_module;
struct ib_peer;

struct ib_conns {
    struct st_node pending; /* struct ib_wire_up */
    uint32_t attempts;      /* to connect, ever: their ids */
    uint32_t n_closing;     /* connections being closed, and failed ones being mended */
    uint32_t rounds;        /* in which both CQs were polled to the end: conn_close.c */
    uint64_t keepalive_at;  /* ns */
    char refusal[128];      /* why no queue pair could be made for a peer, which has failed by it */
};

/* An out-of-band message that is repeated until it is answered. */
struct ib_wire_up {
    struct st_node node; /* in ib_conns.pending */
    struct ib_peer *peer;
    struct ib_card card; /* the peer's */
    const struct ib_method *method;
    struct ib_handle *handle;            /* ud */
    uint32_t addresses;                  /* tcp: of the peer's, tried in vain */
    uint32_t credits[IB_PRIORITIES];     /* that the peer grants at first */
    uint64_t again_at, give_up_at, wait; /* ns */
    uint32_t repeats;                    /* since the last answer */
    uint64_t began;                      /* 0: the peer has begun */
};

/* ---- conn.c: the state machine ---- */
int ib_conn_begin(struct ib_peer *p); /* on the first send */
/* A message has come by `method`, or bytes that claim to be one. False: they are not of this job. */
bool ib_conn_take(struct ib_module *m, const struct ib_method *method, const struct ib_conn *c);

/* ---- conn_up.c: queue pairs of a connection, and from ANSWERED to UP ---- */
void ib_conn_up(struct ib_peer *p);
void ib_conn_heard(struct ib_peer *p); /* its first message has come */
int ib_conn_make_qps(struct ib_peer *p);
void ib_conn_free_qps(struct ib_peer *p, bool used); /* as ib_qps_destroy */

/* ---- conn_send.c: messages, their method and their repetition ---- */
uint32_t ib_conn_next_id(struct ib_module *m);
/* By w's method, now; as struct ib_method's send. */
int ib_conn_send(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w, enum ib_conn_type type);
/* The message of p's state, repeated until it is answered, by sockets too when it is not. */
void ib_conn_send_state(struct ib_module *m, struct ib_peer *p, struct ib_wire_up *w);
/* Once, about the connection that p's ids name. */
void ib_conn_send_once(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, enum ib_conn_type type);
/* Once, about the connection that c names, which p may no longer have. */
void ib_conn_answer(const struct ib_method *method, struct ib_module *m, struct ib_peer *p, const struct ib_conn *c,
                    enum ib_conn_type type);
void ib_conn_send_for_a_while(struct ib_peer *p); /* the message of its state, for a second */
/* Puts a wire-up into the list of pending ones, for that many ns; NULL: no memory. */
struct ib_wire_up *ib_wire_up_new(struct ib_module *m, struct ib_peer *p, const struct ib_card *card, uint64_t give_up);
void ib_wire_up_end(struct ib_peer *p);
void ib_wire_up_release(struct ib_wire_up *w); /* what its method holds for it */
void ib_wire_up_restart(struct ib_peer *p);    /* with another id: the address of one end has changed */
void ib_wire_up_timers(struct ib_module *m);
uint64_t ib_conn_give_up_after(const struct ib_module *m); /* ns that an answer may take */
/* Sends our CLOSE until the peer has answered it. STRATA_ERR_UNSUPPORTED: there is no way. */
int ib_conn_send_close(struct ib_peer *p);
/* Tells rank, whose card is given, that it does not fit. */
void ib_conn_send_misfit(struct ib_module *m, int rank, const struct ib_card *card);

/* ---- keepalive.c ---- */
void ib_keepalive(struct ib_module *m); /* called now and then */

/* ---- conn_close.c: closing in agreement, and mending failed connections ---- */
void ib_close_begin(struct ib_peer *p); /* nothing unless it is up */
void ib_close_mend(struct ib_peer *p);  /* failed: idle again when nothing is left of its connection */
/* The peer's messages, with the number of messages of low priority that it has sent: CLOSE, BYE, CLOSE_TOO. */
void ib_close_asked(struct ib_peer *p, uint32_t low);
void ib_close_left(struct ib_peer *p, uint32_t low);
void ib_close_answered(struct ib_peer *p, uint32_t low);
/* Both completion queues have been polled since the last call, and nothing is stashed. */
void ib_close_progress(struct ib_module *m);
bool ib_close_polls(const struct ib_module *m); /* whether something waits for that, and not for the peer */
/* A work request has ended with an error: true when that does not mean that the connection has failed. */
bool ib_close_forgives(struct ib_peer *p);
/* The peer's CLOSE or CLOSE_TOO came out of band, with the messages it had sent before. */
enum ib_close_word {
    IB_WORD_TAKEN,
    IB_WORD_EARLY /* it is to repeat it */,
    IB_WORD_LOST /* some messages never came */
};
enum ib_close_word ib_close_word(struct ib_peer *p, bool too, uint32_t high, uint32_t low);
/* The peer has had our CLOSE. False: its own is still to come. */
bool ib_close_heard(struct ib_peer *p);
/* The peer requests a new connection, having closed this one in agreement or not. */
void ib_close_requested(struct ib_peer *p, bool agreed);

/* ---- conn_evict.c: which connections are closed, and whether another may be made ---- */
struct ib_evict {
    struct ib_peer *hand; /* of the clock that finds the least recently used */
    uint64_t room_ns;     /* last eviction for want of queue pairs */
    uint32_t cq_peers;    /* peers whose completions fit the CQs */
    uint32_t short_peers; /* peers with queue pairs when the device gave no more */
    uint64_t short_until; /* ns, end of that shortage; 0: there is none */
    bool short_in_vain;   /* one of them has gone, and the device still gives none */
};

/* Whether p may be connected now; where there are too many, the least recently used one is closed. */
bool ib_evict_for_connection(struct ib_module *m, struct ib_peer *p);
bool ib_evict_for_request(struct ib_module *m, struct ib_peer *p); /* the same for one that asks us */
/* Queue pairs are wanted that the device does not give: closes a connection. */
void ib_evict_one(struct ib_module *m);
/* The device has just given no more queue pairs; whether it has lately. For so long only so many peers are asked at a
 * time that those who ask us find room. */
void ib_evict_short(struct ib_module *m);
bool ib_evict_is_short(const struct ib_module *m);
bool ib_evict_asks_too_many(const struct ib_module *m);

/* ---- card.c ---- */
int ib_card_fill(struct ib_module *m); /* ours, but for what the methods of connecting fill in */
/* The card of rank's port that corresponds to this one, with the address that is known now. Where there is none its
 * version is 0, and `rails` are the others that rank has. */
int ib_card_fetch(struct ib_module *m, int rank, struct ib_card *out, char *why, size_t why_size);
void ib_card_misfit(struct ib_module *m, int rank, const struct ib_card *card, const char *why); /* logs it once */
void ib_card_set_address(struct ib_card *card, const struct ib_address *a);

/* ---- address.c ---- */
bool ib_address_refresh(struct ib_module *m); /* whether our port is active; acts on a change of its address */
/* A peer may have another address than we know. */
void ib_address_heard(struct ib_module *m, struct ib_peer *p, const struct ib_conn *c);

#endif

/* Connections in the making and being closed, and the state machine over out-of-band messages: conn.c, conn_send.c. */
#ifndef IB_CONN_H
#define IB_CONN_H

#include <stdbool.h>
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
void ib_conn_free_qps(struct ib_peer *p);
void ib_conn_unmake_qps(struct ib_peer *p); /* never connected */

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

#endif

/* Dialling a peer. */
#ifndef TCP_DIAL_H
#define TCP_DIAL_H

#include "tcp.h"

struct tcp_dial {
    struct tcp_card card;
    uint32_t n; /* addresses in `order` */
    uint8_t order[TCP_ADDRESSES];
    uint32_t next, rounds;   /* next of `order`; rounds that have ended */
    uint32_t n_hung_up;      /* callees that hung up without a proof, since the last proof or a long silence */
    uint8_t refused;         /* by place in the card: addresses at which nobody listened in this round */
    bool fresh;              /* in this round an address was dialled */
    bool young;              /* counts in tcp_module.n_young */
    bool answered;           /* in this round the peer has proved itself, or a call was taken and kept */
    uint64_t called;         /* ns: first dialled; 0: the peer waits for its turn */
    uint64_t began, next_at; /* ns; began: later by the time in which this process did not look */
    uint64_t hung_up_at;     /* ns, as `began`: of the last of n_hung_up */
    char why[160];           /* the last failure */
};

/* card.c */
#define TCP_CARD_KEY 16u
void tcp_card_key(uint32_t link, char key[TCP_CARD_KEY]); /* under which the module of a link publishes its card */
/* The card of a rank's module of a link. */
int tcp_card_get(const struct tcp_module *m, int rank, uint32_t link, struct tcp_card *out);
int tcp_reach(struct st_btl *btl, int rank);
/* MB/s of the module's link to a rank, as the weight beside other links. */
uint32_t tcp_dial_bandwidth(struct tcp_module *m, int rank);
/* Fills in the order of its card's addresses. */
void tcp_dial_order(struct tcp_module *m, int rank, struct tcp_dial *d);

/* dial.c */
int tcp_dial_begin(struct tcp_module *m, struct tcp_peer *p);
/* Dials what is due, of all peers. */
void tcp_dials_go_on(struct tcp_module *m, uint64_t now);
void tcp_dial_end(struct tcp_peer *p);
/* The peer has proved that it lives: the time of dialling begins anew with the next round. */
void tcp_dial_answered(struct tcp_peer *p);
/* A machine has not answered for half of the time-out, in a handshake: the other half, for dialling, begins. */
void tcp_dial_dark(struct tcp_peer *p);
/* The callee that c has dialled has hung up without a proof. */
void tcp_dial_hung_up(const struct tcp_conn *c);
/* Dialling time in which this process did not look does not count. */
void tcp_dial_absent(struct tcp_module *m, uint64_t ns);

/* A peer that was connected has used up half of its time when its silence was noticed. */
static inline uint64_t tcp_dial_limit_ms(const struct tcp_module *m, const struct tcp_peer *p)
{
    uint64_t first = (uint64_t)m->par->connect_timeout_ms, again = tcp_half_timeout_ms(m);

    return p->epoch && again < first ? again : first;
}

/* When a step of the handshake, which begins now, is to be answered by: each time longer for a peer that does not. */
static inline uint64_t tcp_dial_step(const struct tcp_module *m, const struct tcp_peer *p, uint64_t now)
{
    return now + (tcp_dial_limit_ms(m, p) * TCP_MS << p->silent);
}

/* A step was not answered, by a peer whose kernel has taken the call: dialling begins anew. */
static inline void tcp_dial_silent(struct tcp_peer *p)
{
    if (p->silent < TCP_PATIENCE)
        p->silent++;
    if (p->dial)
        p->dial->answered = true;
}

/* Whether c dials an address of this machine: its kernel always answers, at the latest when a full queue has room. */
static inline bool tcp_dial_is_here(const struct tcp_conn *c)
{
    const struct tcp_dial *d = c->peer->dial;

    return d && !c->bulk && !c->peer->far && d->card.address[c->address].flags & TCP_LOOPBACK;
}

/* A connection that was dialled has come to nothing. */
void tcp_dial_failed(struct tcp_peer *p, const struct tcp_conn *c, const char *why);

/* c is no longer a try. */
static inline void tcp_dial_tried(const struct tcp_conn *c)
{
    uint8_t others = (uint8_t) ~(1u << c->address);

    c->peer->trying &= others;
    c->peer->taken &= others;
}

#endif

/* Out-of-band methods: how connection messages travel. One table of ops per method, and the state machine of conn.c
 * over all of them. A message may be lost, doubled or late: its sender repeats it until it is answered. Parameter
 * `connect` names the methods that a process offers, by preference; its card publishes them. */
#ifndef IB_OOB_H
#define IB_OOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire.h"

struct ib_module;
struct ib_peer;
struct ib_wire_up;
struct ibv_ah_attr;

struct ib_method {
    const char *name;
    const char *absent; /* why this build does not have it; NULL: it does */
    uint32_t mask;      /* rounds of progress between two polls, less one: a poll may cost a system call */
    /* Fills in its part of m->card and m->oob.state[]. `why` says why not. */
    int (*open)(struct ib_module *m, char *why, size_t why_size);
    void (*close)(struct ib_module *m); /* also after an open that has failed half-way */
    /* To the peer of w, whose timer repeats it whatever this returns. STRATA_ERR_SYSTEM: no way leads there. */
    int (*send)(struct ib_module *m, struct ib_wire_up *w, const struct ib_conn *c);
    int (*poll)(struct ib_module *m);                       /* hands what has come to m->oob.take; number of events */
    int (*arm)(struct ib_module *m);                        /* before a sleep; NULL: its descriptor is enough */
    void (*end)(struct ib_module *m, struct ib_wire_up *w); /* frees what w holds; NULL: nothing */
    void (*disconnected)(struct ib_module *m, struct ib_peer *p); /* its queue pairs go; NULL: nothing to do */
    /* A queue pair of this number, no peer's, may have failed; NULL: there is none. */
    void (*failed)(struct ib_module *m, uint32_t qpn, const char *why);
    void (*moved)(struct ib_module *m); /* our port has another address now; NULL: nothing to do */
    /* The path to the peer, where the card does not say it; NULL: it does. */
    int (*path)(struct ib_module *m, struct ib_peer *p, struct ibv_ah_attr *a);
    /* Whether our answer to the peer is part of a connection of the method's own, which still exists; NULL: no. */
    bool (*holds)(const struct ib_module *m, const struct ib_peer *p);
    size_t (*bytes)(const struct ib_module *m); /* memory that it holds */
};

extern const struct ib_method ib_method_ud, ib_method_tcp, ib_method_rdmacm;

struct ib_oob {
    bool (*take)(struct ib_module *m, const struct ib_method *method, const struct ib_conn *c); /* ib_conn_take */
    void (*heard)(struct ib_peer *p);                                                           /* ib_conn_heard */
    void *state[IB_METHODS + 1]; /* of the methods, by number */
    uint8_t open[IB_METHODS];    /* numbers of those that are open: the card's, and tcp to fall back on */
    uint32_t looks;              /* rounds of polling them */
    bool fallback;               /* tcp is open without being on the card */
    int wait_fd;                 /* wakes a sleeper, where that takes more than the channel; else -1 */
};

/* ---- by number, which is what cards and lists hold ---- */
const struct ib_method *ib_method(uint32_t number); /* NULL: there is none of that number */
/* "ud,tcp" to numbers, zeroes behind them; false and why when it makes no sense. */
bool ib_methods_parse(const char *text, uint8_t out[IB_METHODS], char *why, size_t why_size);
/* And back, for messages. */
const char *ib_methods_text(const uint8_t list[IB_METHODS], char *out, size_t size);
/* The method that two processes connect by: the first in the leader's list that the other has, too; 0: none. Both get
 * the same answer when one of them leads. */
uint32_t ib_method_choose(const uint8_t mine[IB_METHODS], const uint8_t theirs[IB_METHODS], bool i_lead);

/* ---- all that are open ---- */
int ib_methods_open(struct ib_module *m, char *why, size_t why_size);
void ib_methods_close(struct ib_module *m);
int ib_methods_poll(struct ib_module *m);
int ib_methods_arm(struct ib_module *m);         /* STRATA_ERR_AGAIN: something has come */
void ib_methods_disconnected(struct ib_peer *p); /* its queue pairs go */
void ib_methods_failed(struct ib_module *m, uint32_t qpn, const char *why);
void ib_methods_moved(struct ib_module *m); /* our port has another address now */
/* Whether a peer with this card can be asked by sockets when it does not answer by `chosen`. */
bool ib_methods_fall_back(const struct ib_module *m, const struct ib_method *chosen, const struct ib_card *card);
size_t ib_methods_bytes(const struct ib_module *m);
int ib_wait_on(struct ib_module *m, int fd); /* fd wakes a sleeper of this module, too */

#endif

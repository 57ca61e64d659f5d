/* The second connection of a pair, for pieces of puts and of answers to gets, and for fragments of long messages. */
#ifndef TCP_BULK_H
#define TCP_BULK_H

#include "tcp.h"

/* By which connection pieces of puts and answers go; decided once in an epoch. */
enum tcp_way {
    TCP_WAY_OPEN,   /* there was none */
    TCP_WAY_WANTED, /* they wait for the second connection */
    TCP_WAY_BULK,
    TCP_WAY_FIRST /* there is no second one */
};

/* By which pieces go, or NULL: by none yet; what is needed for one is begun. */
struct tcp_conn *tcp_bulk_way(struct tcp_module *m, struct tcp_peer *p);
/* By the listener: a dialler has proved itself. */
void tcp_bulk_met(struct tcp_module *m, struct tcp_conn *c);
void tcp_bulk_up(struct tcp_module *m, struct tcp_conn *c);
/* TCP_ASK_BULK or TCP_NO_BULK has come. Returns NULL or what is wrong with it. */
const char *tcp_bulk_told(struct tcp_module *m, struct tcp_conn *c, uint8_t kind);
/* Closes it because of an error or the peer's end: so ends the pair's connection, unless it was not used yet. */
void tcp_bulk_lost(struct tcp_module *m, struct tcp_conn *c, const char *why);
/* It cannot be sent by any more, so the pair's connection is over; what has come is read. */
void tcp_bulk_broken(struct tcp_module *m, struct tcp_conn *c, const char *why);
/* receive.c: delivers what has come by a connection that is about to be closed; by the second one, before the first is
 * closed. From progress. */
void tcp_receive_rest(struct tcp_module *m, struct tcp_conn *c);
void tcp_receive_second(struct tcp_module *m, struct tcp_peer *p);
/* By the dialler: a step of its handshake was not answered in time. It is dialled again. */
void tcp_bulk_expired(struct tcp_module *m, struct tcp_conn *c);
/* The first one is over: closes it, or if what has come by the first one is still to be read, ends sending. */
void tcp_bulk_drop(struct tcp_module *m, struct tcp_peer *p);
/* What comes by it is still to be read, before the peer has left. */
bool tcp_bulk_goes_on(const struct tcp_peer *p);

/* By which pieces go now, or NULL. */
static inline struct tcp_conn *tcp_bulk_now(const struct tcp_peer *p)
{
    return p->way == TCP_WAY_FIRST ? p->conn : p->way == TCP_WAY_BULK ? p->bulk : NULL;
}

#endif

/* Proof that a process knows a key. */
#ifndef TCP_PROOF_H
#define TCP_PROOF_H

#include <stdbool.h>
#include "wire.h"

/* What both sides of a handshake have said of themselves; each proof covers all of it. */
struct tcp_said {
    uint32_t from, to; /* ranks of dialler and listener */
    uint32_t dialler_max_send, listener_max_send;
    uint32_t dialler_epoch, listener_epoch;
    uint32_t role;                                   /* enum tcp_role */
    uint8_t dialler[TCP_NONCE], listener[TCP_NONCE]; /* nonces */
};
/* The proof of one side, by the listener's key: neither can be used for the other, or again. */
void tcp_prove(const uint8_t key[TCP_KEY], bool dialler, const struct tcp_said *said, uint8_t out[TCP_PROOF]);

#endif

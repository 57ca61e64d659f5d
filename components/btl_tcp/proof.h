/* Proof that a process knows a key: HMAC-SHA-256 (RFC 2104, FIPS 180-4). */
#ifndef TCP_PROOF_H
#define TCP_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include "wire.h"

/* The code of `n` bytes under a key of at most 64 bytes. */
void tcp_hmac(const void *key, size_t key_n, const void *data, size_t n, uint8_t out[32]);
/* Compares in a time that does not depend on where they differ. */
bool tcp_same(const uint8_t *a, const uint8_t *b, size_t n);

/* What both sides of a handshake have said of themselves; each proof covers all of it. */
struct tcp_said {
    uint32_t from, to; /* ranks of dialler and listener */
    uint32_t dialler_max_send, listener_max_send;
    uint32_t dialler_epoch, listener_epoch;
    uint8_t dialler[TCP_NONCE], listener[TCP_NONCE]; /* nonces */
};
/* The proof of one side, by the listener's key: neither can be used for the other, or again. */
void tcp_prove(const uint8_t key[TCP_KEY], bool dialler, const struct tcp_said *said, uint8_t out[TCP_PROOF]);

#endif

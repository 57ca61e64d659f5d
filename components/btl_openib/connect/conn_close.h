/* Closing connections in agreement, and mending failed ones: conn_close.c. */
#ifndef IB_CONN_CLOSE_H
#define IB_CONN_CLOSE_H

#include <stdbool.h>
#include <stdint.h>

struct ib_module;
struct ib_peer;

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

#endif

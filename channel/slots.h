/* Private to channels: the slots of a channel's ring, whether both ends have it mapped or puts fill it. All with the
 * lock held, unless they say otherwise. */
#ifndef CHANNEL_SLOTS_H
#define CHANNEL_SLOTS_H

#include "channel/channel.h"

/* ---- slots_out.c: the sender ---- */

/* Opens the ring that the receiver has offered, c->offer: mapped where the transport can do that. */
int channel_slots_open(strata_channel_sender_t *c);
/* Without the lock; no notice finds the end any more. */
void channel_slots_close(strata_channel_sender_t *c);
static inline bool channel_slots_are_open(const strata_channel_sender_t *c)
{
    return c->mapped.ring || c->landing;
}
/* STRATA_OK, or what has broken the ring. */
int channel_slots_rc(const strata_channel_sender_t *c);
/* As st_landing_reserve; longer ones than the ring are not asked for. */
int channel_slots_reserve(strata_channel_sender_t *c, uint32_t len, struct st_landing_view *view);
/* As st_landing_commit; whether it waits for others is decided here. */
int channel_slots_commit(strata_channel_sender_t *c, uint32_t len, unsigned how);
/* Sends a message of a ring that puts fill with one hold of the lock: a short one that leaves at once, or a long one
 * from where the user has it, where trials say so. STRATA_ERR_UNSUPPORTED: by reserve and commit. STRATA_ERR_AGAIN: a
 * long one finds no room yet. Or what has broken the ring. */
int channel_slots_send(strata_channel_sender_t *c, const void *data, size_t len);
/* Publishes messages that are kept for others. */
int channel_slots_flush(strata_channel_sender_t *c);
/* As st_landing_end. */
int channel_slots_end(strata_channel_sender_t *c);
/* STRATA_ERR_AGAIN until the receiver has released everything, up to the end. */
int channel_slots_finished(strata_channel_sender_t *c);
/* Before a sleep: the receiver tells when there is room for a message. */
void channel_slots_ask(strata_channel_sender_t *c, size_t len);
/* The ring is broken with rc, unless it is already. */
void channel_slots_fail(strata_channel_sender_t *c, int rc);
/* The peer has failed, or its paths have changed. */
void channel_slots_changed(strata_channel_sender_t *c);
/* The receiver sleeps and has asked to be told: it is. With the lock held or not. */
void channel_slots_tell(strata_channel_sender_t *c);

/* After messages of a mapped ring were committed. Without the lock, where it is not `threaded`: then nothing is kept.
 */
int channel_slots_pack(strata_channel_sender_t *c);

/* ---- slots_in.c: the receiver ---- */

/* STRATA_OK, or what has broken the ring. */
int channel_slots_in_rc(const strata_channel_receiver_t *c);
/* As st_landing_peek. */
int channel_slots_peek(strata_channel_receiver_t *c, struct st_landing_view *view);
/* Of a ring that puts fill: whether channel_slots_take would give STRATA_ERR_AGAIN. */
static inline bool channel_slots_are_empty(const strata_channel_receiver_t *c)
{
    return !c->in->ready && !c->in->ended && c->in->rc == STRATA_OK;
}
/* Copies the next message of a ring that puts fill, and releases it: as st_landing_take. STRATA_ERR_UNSUPPORTED also
 * where the ring may be mapped. */
int channel_slots_take(strata_channel_receiver_t *c, void *buffer, size_t size, uint32_t *len);
/* As st_landing_release, of a message of len bytes. */
int channel_slots_release(strata_channel_receiver_t *c, uint64_t end, size_t len);
/* No message is there: the sender gets the room that was released, however little, where it may wait for that. peek
 * does it by itself. */
void channel_slots_return_rest(strata_channel_receiver_t *c);
/* Messages that are held. */
uint32_t channel_slots_held(const strata_channel_receiver_t *c);
/* Whether peek would not give STRATA_ERR_AGAIN. */
bool channel_slots_have_news(strata_channel_receiver_t *c);
/* The end was read, and nothing is held. */
bool channel_slots_all_taken(const strata_channel_receiver_t *c);
/* Before a sleep: the sender tells of the next message; a look and mapped_barrier must follow. False: it tells anyway.
 */
bool channel_slots_listen(strata_channel_receiver_t *c);
/* A mapped ring's sender waits for room: it is told that there is. Without the lock. */
void channel_slots_tell_room(strata_channel_receiver_t *c);

#endif

/* Private to channels: messages that go straight to a receiver that waits for them in recv.
 * docs/design/channel_direct.md.
 */
#ifndef CHANNEL_DIRECT_H
#define CHANNEL_DIRECT_H

#include <strata/sdk/notify.h>

#include "channel/channel.h"
#include "channel/choice.h"
#include "channel/memory.h"

/* A slot that stands for a message which was put to the receiver's memory, as it travels: marked, and told from a
 * descriptor by its length. */
struct channel_straight {
    uint64_t length; /* of the message */
};
/* The receiver's offer: the data of CHANNEL_WANT. */
struct channel_want {
    uint64_t address, length; /* of the buffer */
    uint8_t key[ST_BTL_KEY_MAX];
};

/* The sender's, from the first message on that may go straight. */
struct channel_direct {
    struct channel_choices choices;
    uint32_t n_gone; /* messages that went straight */
    /* Of a ring that is filled by puts: */
    uint32_t wished; /* classes, by bit, of which the receiver was told that it shall say what it waits for */
    bool wanted;     /* it waits, as it said last, */
    uint64_t at;     /* for the message at this position */
    struct channel_want want;
    struct st_notify put; /* while `busy`, from `memory` */
    struct channel_memory memory;
    bool busy;
    int rc; /* of it */
};

/* The receiver's, of a ring that is filled by puts, from the first wish on. */
struct channel_awaited {
    uint32_t wished; /* as the sender said last */
    uint64_t at;     /* position for whose message it waits or has decided not to say so, */
    bool decided;    /* in this call of recv */
    bool told;       /* the sender knows `memory` */
    bool there;      /* the bytes are */
    bool coming;     /* the slot was read: */
    uint64_t length; /* bytes of the message, */
    uint64_t end;    /* and the slot's end */
    size_t size;     /* bytes of `memory` */
    struct channel_memory memory;
};

/* ---- direct_out.c: the sender, of a ring that is filled by puts. With the lock held. ---- */

/* The receiver waits for the next message, with room for that many bytes. */
bool channel_put_wanted(const strata_channel_sender_t *c, size_t length);
/* Puts it and commits its slot: d->busy while the put is under way. STRATA_ERR_AGAIN: nothing was done. */
int channel_put_straight(strata_channel_sender_t *c, const void *data, size_t length);
/* After the last: STRATA_OK: the user's memory may be used again; STRATA_ERR_AGAIN: not yet; or its error. */
int channel_put_is_done(strata_channel_sender_t *c);
/* Tells the receiver for which classes, by bit, it shall say what it waits for. */
void channel_put_wish(strata_channel_sender_t *c, uint32_t classes);
/* The receiver waits. What is wrong, or NULL. */
const char *channel_put_want(strata_channel_sender_t *c, uint64_t at, const void *data);

/* ---- direct_in.c: the receiver. With the lock held. ---- */

/* The sender's wish. */
void channel_wished(strata_channel_receiver_t *c, uint32_t classes);
/* A recv without a limit finds nothing: says so, once for each call. */
void channel_await(strata_channel_receiver_t *c, void *buffer, size_t size);
/* The next message, of this marked slot, is or will be in the buffer. STRATA_OK, or what has broken the channel. */
int channel_await_begin(strata_channel_receiver_t *c, const struct st_landing_view *slot);
/* STRATA_OK: it is there; STRATA_ERR_AGAIN; or what has broken the channel. */
int channel_await_there(strata_channel_receiver_t *c);
/* Its bytes have arrived. False: nobody has asked. */
bool channel_await_landed(strata_channel_receiver_t *c);
/* recv returns; its buffer is the user's again. */
void channel_await_end(strata_channel_receiver_t *c);

#endif

/* The two ends of a landing ring (landing_ring.h) between two processes, over put with notice: a client's own rings.
 *
 * The receiver opens its end first and sends the card to the sender by a message of its own. Each client finds its end
 * by rank, st_landing_is_credit and st_landing_name in its `notified` and hands the notice to it; from its
 * `peer_failed` and `peer_changed` it calls st_landing_*_changed. A ring that has broken stays so: both ends are
 * closed, a fresh one has a new key and another name, since a notice of the old one may be late. Close the ends before
 * the client leaves. All functions with the lock held unless they say otherwise. */
#ifndef STRATA_SDK_LANDING_ENDS_H
#define STRATA_SDK_LANDING_ENDS_H

#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/landing_ring.h>
#include <strata/sdk/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_landing_sender;
struct st_landing_receiver;

/* What the sender must know of a ring; travels as it is. */
struct st_landing_card {
    uint64_t base;               /* address in the receiver */
    uint32_t size;               /* bytes */
    uint32_t name;               /* in its notices */
    uint8_t key[ST_BTL_KEY_MAX]; /* of the memory */
};

/* Where a ring lies. */
struct st_landing_where {
    struct st_worker *worker; /* the context's */
    struct st_peer *peer;     /* the other end's, connected */
    uint8_t path;             /* the same at both ends: memory is registered with its module */
    enum st_am am;            /* of the client */
    uint32_t more; /* at the receiver: bytes behind the ring, registered with it, that are the client's own */
};

/* Makes the receiver's end of a ring of `size` bytes, a power of two, with a name that no other ring of this sender
 * has. STRATA_ERR_ARG, STRATA_ERR_NOMEM; STRATA_ERR_AGAIN: cannot be registered now; as the transport says. */
ST_API int st_landing_receiver_open(const struct st_landing_where *where, uint32_t size, uint32_t name,
                                    struct st_landing_receiver **out, struct st_landing_card *card);
/* Frees it, and its memory with the key. The sender must have finished, or be told to stop: what it still writes fails,
 * and breaks its ring. Without the lock; makes progress while a notice is under way. */
ST_API void st_landing_receiver_close(struct st_landing_receiver *r);
/* The ring, to be read. */
ST_API const struct st_landing_in *st_landing_receiver_in(const struct st_landing_receiver *r);
/* As st_landing_peek. */
ST_API int st_landing_receiver_peek(struct st_landing_receiver *r, struct st_landing_view *view);
/* As st_landing_take. */
ST_API int st_landing_receiver_take(struct st_landing_receiver *r, void *to, size_t size, uint32_t *len);
/* As st_landing_return_rest. */
ST_API void st_landing_receiver_return_rest(struct st_landing_receiver *r);
/* As st_landing_release. */
ST_API int st_landing_receiver_release(struct st_landing_receiver *r, const struct st_landing_view *view);
/* A notice for this end has arrived. */
ST_API void st_landing_receiver_notified(struct st_landing_receiver *r, uint32_t notice);
/* A notice for this end has arrived by a message of the client's, with its data; as st_landing_arrive. */
ST_API void st_landing_receiver_arrived(struct st_landing_receiver *r, uint32_t notice, const void *data, uint32_t len);
/* As st_landing_arrive_slot. After true st_landing_receiver_pay follows when the reader has its message, so that credit
 * does not come before that. */
ST_API bool st_landing_receiver_arrived_slot(struct st_landing_receiver *r, uint32_t notice, const void *head,
                                             const void *data, uint32_t len, void *to, size_t size);
/* Credit that is due leaves with the next progress. */
ST_API void st_landing_receiver_pay(struct st_landing_receiver *r);
/* The peer has failed, or its paths have changed: the ring is broken if it was lost by that. */
ST_API void st_landing_receiver_changed(struct st_landing_receiver *r);
/* The ring is broken with rc, unless it is already. */
ST_API void st_landing_receiver_fail(struct st_landing_receiver *r, int rc);
/* Waits for a message, asleep if it takes long: STRATA_OK, ST_LANDING_ENDED, or what has broken the ring. Without the
 * lock; one thread for each end. */
ST_API int st_landing_receiver_wait(struct st_landing_receiver *r);

/* Sends bytes of the ring and their notice by a message of the client's, instead of a put. 1: it has gone;
 * STRATA_ERR_AGAIN; STRATA_ERR_UNSUPPORTED: by a put. */
typedef int (*st_landing_send_fn)(void *arg, const void *bytes, uint32_t len, uint32_t notice);

/* Makes the sender's end of the ring that a card names. STRATA_ERR_ARG: no such ring can be; STRATA_ERR_UNSUPPORTED:
 * the path cannot put; as st_landing_receiver_open. */
ST_API int st_landing_sender_open(const struct st_landing_where *where, const struct st_landing_card *card,
                                  struct st_landing_sender **out);
/* A put is offered to `send` first while *offers, which is the client's; NULL: none is. */
ST_API void st_landing_sender_by_message(struct st_landing_sender *s, st_landing_send_fn send, void *arg,
                                         const bool *offers);
/* Frees it; what was not put is lost. Waits for puts under way. Without the lock. */
ST_API void st_landing_sender_close(struct st_landing_sender *s);
/* The ring, to be read. */
ST_API const struct st_landing_out *st_landing_sender_out(const struct st_landing_sender *s);
/* As st_landing_send. */
ST_API int st_landing_sender_send(struct st_landing_sender *s, const void *data, uint32_t len);
/* As st_landing_send_by. */
ST_API int st_landing_sender_send_by(struct st_landing_sender *s, const void *data, uint32_t len,
                                     st_landing_slot_fn send, void *arg);
/* As st_landing_reserve. */
ST_API int st_landing_sender_reserve(struct st_landing_sender *s, uint32_t len, struct st_landing_view *view);
/* As st_landing_commit; what the transport does not take now, progress puts. */
ST_API int st_landing_sender_commit(struct st_landing_sender *s, uint32_t len, unsigned how);
/* Puts what was kept; STRATA_OK, or what has broken the ring. */
ST_API int st_landing_sender_flush(struct st_landing_sender *s);
/* As st_landing_end. */
ST_API int st_landing_sender_end(struct st_landing_sender *s);
/* A notice for this end has arrived. */
ST_API void st_landing_sender_notified(struct st_landing_sender *s, uint32_t notice);
/* The peer has failed, or its paths have changed: the ring is broken if it was lost by that. */
ST_API void st_landing_sender_changed(struct st_landing_sender *s);
/* The ring is broken with rc, unless it is already. */
ST_API void st_landing_sender_fail(struct st_landing_sender *s, int rc);
/* Reserves, and waits for the room, asleep if it takes long. As st_landing_reserve, but for STRATA_ERR_AGAIN. Without
 * the lock; one thread for each end. */
ST_API int st_landing_sender_wait(struct st_landing_sender *s, uint32_t len, struct st_landing_view *view);
/* Ends the ring and waits until the receiver has released all: STRATA_OK, or what has broken the ring. Without the
 * lock.
 */
ST_API int st_landing_sender_finish(struct st_landing_sender *s);

#ifdef __cplusplus
}
#endif
#endif

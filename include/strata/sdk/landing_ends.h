/* The two ends of a landing ring (landing_ring.h) between two processes, over put with notice: a client's own rings.
 *
 * The receiver opens its end first and sends the card to the sender in a message of the client. In its `notified`, each
 * client finds its end by rank, st_landing_is_credit and st_landing_name, and passes the notice to it; from its
 * `peer_failed` and `peer_changed` it calls st_landing_*_changed. A broken ring stays broken: close both ends, and open
 * a new ring with another name, since a notice of the old ring may be late. Close the ends before the client leaves.
 * All functions are called with the lock held unless stated otherwise. */
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

/* Description of a ring for its sender; sent unchanged. */
struct st_landing_card {
    uint64_t base;               /* address in the receiver */
    uint32_t size;               /* bytes */
    uint32_t name;               /* in its notices */
    uint8_t key[ST_BTL_KEY_MAX]; /* of the memory */
};

/* The place of a ring. */
struct st_landing_where {
    struct st_worker *worker; /* the context's */
    struct st_peer *peer;     /* the other end's, connected */
    uint8_t path;             /* the same at both ends: memory is registered with its module */
    enum st_am am;            /* of the client */
    uint32_t more;            /* at the receiver: bytes behind the ring, registered with it, for the client */
};

/* Makes the receiver's end of a ring of `size` bytes, a power of two, with a name that no other ring of this sender
 * has. STRATA_ERR_ARG, STRATA_ERR_NOMEM; STRATA_ERR_AGAIN: the memory cannot be registered now; other errors of the
 * transport's reg. */
ST_API int st_landing_receiver_open(const struct st_landing_where *where, uint32_t size, uint32_t name,
                                    struct st_landing_receiver **out, struct st_landing_card *card);
/* Frees the end, its memory and the key. The sender must have finished, or have been told to stop: its later writes
 * fail and break its ring. Without the lock; makes progress while a notice is in flight. */
ST_API void st_landing_receiver_close(struct st_landing_receiver *r);
/* The state of the ring, read-only. */
ST_API const struct st_landing_in *st_landing_receiver_in(const struct st_landing_receiver *r);
/* As st_landing_peek. */
ST_API int st_landing_receiver_peek(struct st_landing_receiver *r, struct st_landing_view *view);
/* As st_landing_take. */
ST_API int st_landing_receiver_take(struct st_landing_receiver *r, void *to, size_t size, uint32_t *len);
/* As st_landing_return_rest. */
ST_API void st_landing_receiver_return_rest(struct st_landing_receiver *r);
/* As st_landing_release. */
ST_API int st_landing_receiver_release(struct st_landing_receiver *r, const struct st_landing_view *view);
/* Handles a notice for this end. */
ST_API void st_landing_receiver_notified(struct st_landing_receiver *r, uint32_t notice);
/* Handles a notice that a message of the client brought, together with its data; as st_landing_arrive. */
ST_API void st_landing_receiver_arrived(struct st_landing_receiver *r, uint32_t notice, const void *data, uint32_t len);
/* As st_landing_arrive_slot. If it returns true, call st_landing_receiver_pay when the reader has its message, so that
 * credit is not sent before. */
ST_API bool st_landing_receiver_arrived_slot(struct st_landing_receiver *r, uint32_t notice, const void *head,
                                             const void *data, uint32_t len, void *to, size_t size);
/* Sends due credit with the next progress. */
ST_API void st_landing_receiver_pay(struct st_landing_receiver *r);
/* For a failed peer or changed paths: breaks the ring if its path is lost. */
ST_API void st_landing_receiver_changed(struct st_landing_receiver *r);
/* Breaks the ring with rc, unless it is broken already. */
ST_API void st_landing_receiver_fail(struct st_landing_receiver *r, int rc);
/* Waits for a message; a long wait sleeps. STRATA_OK, ST_LANDING_ENDED, or the error that broke the ring. Without the
 * lock; one thread for each end. */
ST_API int st_landing_receiver_wait(struct st_landing_receiver *r);

/* Sends bytes of the ring and their notice by a message of the client, instead of a put. 1: sent; STRATA_ERR_AGAIN;
 * STRATA_ERR_UNSUPPORTED: the ring uses a put. */
typedef int (*st_landing_send_fn)(void *arg, const void *bytes, uint32_t len, uint32_t notice);

/* Makes the sender's end of the ring that a card describes. STRATA_ERR_ARG: the card is invalid;
 * STRATA_ERR_UNSUPPORTED: the path cannot put; other errors as st_landing_receiver_open. */
ST_API int st_landing_sender_open(const struct st_landing_where *where, const struct st_landing_card *card,
                                  struct st_landing_sender **out);
/* Calls `send` before each put while *offers, a variable of the client, is true. NULL: never. */
ST_API void st_landing_sender_by_message(struct st_landing_sender *s, st_landing_send_fn send, void *arg,
                                         const bool *offers);
/* Frees the end; messages that were not put are lost. Waits for puts in flight. Without the lock. */
ST_API void st_landing_sender_close(struct st_landing_sender *s);
/* The state of the ring, read-only. */
ST_API const struct st_landing_out *st_landing_sender_out(const struct st_landing_sender *s);
/* As st_landing_send. */
ST_API int st_landing_sender_send(struct st_landing_sender *s, const void *data, uint32_t len);
/* As st_landing_send_by. */
ST_API int st_landing_sender_send_by(struct st_landing_sender *s, const void *data, uint32_t len,
                                     st_landing_slot_fn send, void *arg);
/* As st_landing_reserve. */
ST_API int st_landing_sender_reserve(struct st_landing_sender *s, uint32_t len, struct st_landing_view *view);
/* As st_landing_commit; progress repeats puts that the transport does not accept now. */
ST_API int st_landing_sender_commit(struct st_landing_sender *s, uint32_t len, unsigned how);
/* Puts held-back messages; STRATA_OK, or the error that broke the ring. */
ST_API int st_landing_sender_flush(struct st_landing_sender *s);
/* As st_landing_end. */
ST_API int st_landing_sender_end(struct st_landing_sender *s);
/* Handles a notice for this end. */
ST_API void st_landing_sender_notified(struct st_landing_sender *s, uint32_t notice);
/* For a failed peer or changed paths: breaks the ring if its path is lost. */
ST_API void st_landing_sender_changed(struct st_landing_sender *s);
/* Breaks the ring with rc, unless it is broken already. */
ST_API void st_landing_sender_fail(struct st_landing_sender *s, int rc);
/* Reserves space, and waits for it; a long wait sleeps. As st_landing_reserve, except for STRATA_ERR_AGAIN. Without the
 * lock; one thread for each end. */
ST_API int st_landing_sender_wait(struct st_landing_sender *s, uint32_t len, struct st_landing_view *view);
/* Ends the ring and waits until the receiver has released all messages. STRATA_OK, or the error that broke the ring.
 * Without the lock. */
ST_API int st_landing_sender_finish(struct st_landing_sender *s);

#ifdef __cplusplus
}
#endif
#endif

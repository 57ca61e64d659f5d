/* One-way channels for run-time systems: one sender, one receiver, messages in order, end of stream. The rank of the
 * peer in the world and a name identify a channel; either end may open first. Messages arrive in a ring in the
 * receiver's memory; releasing messages frees room. Guide: docs/channels.md; design: docs/design/channel.md.
 *
 * One thread at a time may use an end; different ends may be used by different threads at STRATA_THREAD_MULTIPLE. Close
 * every end before strata_finalize. */
#ifndef STRATA_CHANNEL_H
#define STRATA_CHANNEL_H

#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a channel's ring when opening asks for 0. */
#define STRATA_CHANNEL_SIZE 65536
/* Bytes of a ring that no message may use. */
#define STRATA_CHANNEL_HEAD 16
/* Longest name, without the zero behind it. */
#define STRATA_CHANNEL_NAME_MAX 31
/* Maximum number of channels from one rank to another. */
#define STRATA_CHANNEL_MOST 1024
/* Returned instead of a message: end of stream. */
#define STRATA_CHANNEL_ENDED 1
/* Value of a limit: wait without limit. */
#define STRATA_CHANNEL_FOREVER (-1)

/* The sender's end. */
typedef struct strata_channel_sender strata_channel_sender_t;
/* The receiver's end. */
typedef struct strata_channel_receiver strata_channel_receiver_t;

/* A set of receiving ends. */
typedef struct strata_channel_set strata_channel_set_t;

/* An arrived message in place, or the space for one: one part, or two where the ring wraps. */
typedef struct strata_channel_view {
    void *first;       /* first_len bytes */
    void *second;      /* second_len bytes, or NULL */
    size_t first_len;  /* bytes of the first part */
    size_t second_len; /* bytes of the second part, often 0 */
    uint64_t mark;     /* the channel's own */
} strata_channel_view_t;

/* Calls that may wait take a limit in milliseconds. With 0 they do not wait and return STRATA_ERR_AGAIN; with a
 * positive limit they return STRATA_ERR_TIMEOUT when it is over, late by mca_base_sleep_max_us at most; with
 * STRATA_CHANNEL_FOREVER they wait without limit.
 *
 * When the other end is closed, its process has ended or the path to it is lost, all calls on the channel return
 * STRATA_ERR_PEER; other channels are not affected. A receiver first gets the messages that had arrived. A lost path
 * may come back: until the peer is reported as failed, strata_channel_open_send succeeds and the first message waits,
 * and strata_channel_open_recv waits; then they return STRATA_ERR_PEER. */

/* Opens the sending end of channel `name` to `rank` of the world. Does not wait for the receiver; the first message
 * does. STRATA_ERR_ARG, STRATA_ERR_RANK, STRATA_ERR_NOMEM, STRATA_ERR_PEER, STRATA_ERR_UNREACHABLE;
 * STRATA_ERR_UNSUPPORTED: the transport cannot put. */
STRATA_API int strata_channel_open_send(strata_t *s, int rank, const char *name, strata_channel_sender_t **out);
/* Opens the receiving end of channel `name` from `rank` with a ring of `size` bytes, a power of two from 256 to 1 MiB;
 * 0: STRATA_CHANNEL_SIZE. Does not wait for the sender, with two exceptions: while the path to it is lost; and if all
 * STRATA_CHANNEL_MOST rings of the pair are in use, until the sender of one that is being closed has made progress.
 * Errors as strata_channel_open_send. */
STRATA_API int strata_channel_open_recv(strata_t *s, int rank, const char *name, size_t size,
                                        strata_channel_receiver_t **out);

/* Reserves the space for a message of `length` bytes, into which the caller writes; valid until commit or the next
 * reserve. A message longer than the ring less STRATA_CHANNEL_HEAD gets memory of its own, where it stays until the
 * receiver has taken it. A channel keeps two such messages; the reservation for a third one waits until the receiver
 * has taken one. STRATA_ERR_NOMEM: no memory for a long message. */
STRATA_API int strata_channel_reserve(strata_channel_sender_t *c, size_t length, int64_t limit_ms,
                                      strata_channel_view_t *view);
/* Sends the first `length` bytes of the reserved space as the next message. The message leaves at once if nothing of
 * this channel is in flight. Otherwise it may be held back so that several leave together: at the latest with flush,
 * close or the context's next progress. STRATA_ERR_ARG: less than `length`, or nothing, is reserved. */
STRATA_API int strata_channel_commit(strata_channel_sender_t *c, size_t length);
/* Reserves, copies, commits. The caller may use `data` again on return. With STRATA_CHANNEL_FOREVER and at least
 * mca_base_channel_direct_min bytes, a message may go directly from `data` to a receiver that waits in recv. */
STRATA_API int strata_channel_send(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms);
/* Sends held-back messages now. */
STRATA_API int strata_channel_flush(strata_channel_sender_t *c);
/* Whether the receiver has taken all messages longer than the ring; makes no progress and does not wait. Until then the
 * receiver may need progress of this process. STRATA_OK: yes; STRATA_ERR_AGAIN: not yet; otherwise the error that broke
 * the channel. Any thread may call this function, also while another one uses the end. */
STRATA_API int strata_channel_taken(strata_channel_sender_t *c);
/* Ends the stream without waiting until the receiver has taken it; close the end afterwards. Takes a limit, because the
 * end of the stream needs room in the ring. */
STRATA_API int strata_channel_end(strata_channel_sender_t *c, int64_t limit_ms);
/* Ends the stream and waits until the receiver has released all; then strata_channel_close_send does not wait. */
STRATA_API int strata_channel_finish(strata_channel_sender_t *c, int64_t limit_ms);
/* Ends the stream, waits until the receiver has released all, and frees the end. STRATA_OK: all was released. Otherwise
 * the error that broke the channel; the end is freed in any case. */
STRATA_API int strata_channel_close_send(strata_channel_sender_t *c);
/* Abandons the stream and frees the end; waits for puts in flight, but not for the receiver. The receiver gets the
 * messages that have arrived, up to a long message that it has not moved, then STRATA_ERR_PEER; a receiver that opens
 * later gets that error at once. Memory of long messages stays until the receiver closes, or strata_finalize. */
STRATA_API int strata_channel_abort_send(strata_channel_sender_t *c);

/* Returns the next message where it landed. The receiver holds it until strata_channel_release; the next peek returns
 * the message behind it. A message longer than the ring is moved to memory of the receiver first, which may take
 * several calls with a limit. STRATA_CHANNEL_ENDED: the stream has ended. STRATA_ERR_NOMEM: no memory for a long
 * message; strata_channel_recv can still take it. */
STRATA_API int strata_channel_peek(strata_channel_receiver_t *c, int64_t limit_ms, strata_channel_view_t *view);
/* Releases a held message, in any order; its space is reused when all older messages are released, too.
 * STRATA_ERR_ARG: the message is not held, and nothing changes. */
STRATA_API int strata_channel_release(strata_channel_receiver_t *c, const strata_channel_view_t *view);
/* Copies the next message to `buffer` of `size` bytes, and its length in bytes to *length unless that is NULL. A
 * message longer than the ring is moved directly to the buffer; once that has begun, the limit does not apply.
 * STRATA_ERR_TRUNCATE: the message was longer; the excess is lost. STRATA_CHANNEL_ENDED: the stream has ended.
 * STRATA_ERR_STATE: a message is held. */
STRATA_API int strata_channel_recv(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length,
                                   int64_t limit_ms);
/* Frees the end; waits only for gets of a long message that are in flight. If the stream has not ended, or messages are
 * held, the sender's calls return STRATA_ERR_PEER from now on. The ring's memory stays until the sender has closed,
 * too. */
STRATA_API int strata_channel_close_recv(strata_channel_receiver_t *c);

/* Makes a set of receiving ends, for a thread that takes messages from any of them. One thread uses the set and its
 * ends. STRATA_ERR_NOMEM. */
STRATA_API int strata_channel_set_create(strata_t *s, strata_channel_set_t **out);
/* Frees the set. STRATA_ERR_STATE: it contains ends. */
STRATA_API int strata_channel_set_destroy(strata_channel_set_t *set);
/* Adds an end of the same context; closing the end removes it. STRATA_ERR_STATE: the end is in a set. */
STRATA_API int strata_channel_set_add(strata_channel_set_t *set, strata_channel_receiver_t *c);
/* Removes an end. */
STRATA_API int strata_channel_set_remove(strata_channel_set_t *set, strata_channel_receiver_t *c);
/* Returns an end with a message, an end of stream or an error for the next peek or recv; such ends take turns. These
 * calls also move a long message; its end is returned again only when the message is complete. A long wait sleeps.
 * STRATA_CHANNEL_ENDED: the set is empty. */
STRATA_API int strata_channel_set_next(strata_channel_set_t *set, int64_t limit_ms, strata_channel_receiver_t **out);

#ifdef __cplusplus
}
#endif
#endif

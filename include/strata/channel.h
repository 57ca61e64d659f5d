/* One-way channels for run-time systems: one sender, one receiver, messages in order, end of stream. The rank of the
 * peer in the world and a name identify a channel; either end may open first. Messages arrive in a ring in the
 * receiver's memory; consumption frees room. docs/design/channel.md.
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

/* Calls that may wait take a limit in milliseconds: 0 does not wait and gives STRATA_ERR_AGAIN; a positive one gives
 * STRATA_ERR_TIMEOUT when it is over, late by mca_base_sleep_max_us at most; STRATA_CHANNEL_FOREVER. When the other end
 * is closed, its process has ended or the path to it is lost, all calls on the channel return STRATA_ERR_PEER; other
 * channels are not affected. A receiver first gets the messages that had arrived. A lost path may come back: until the
 * peer is reported as failed, strata_channel_open_send succeeds and the first message waits, as does
 * strata_channel_open_recv; then they return STRATA_ERR_PEER. */

/* Opens the sending end of channel `name` to `rank`. Does not wait for the receiver; the first message does.
 * STRATA_ERR_ARG, STRATA_ERR_RANK, STRATA_ERR_NOMEM, STRATA_ERR_PEER, STRATA_ERR_UNREACHABLE; STRATA_ERR_UNSUPPORTED:
 * the transport cannot put. */
STRATA_API int strata_channel_open_send(strata_t *s, int rank, const char *name, strata_channel_sender_t **out);
/* Opens the receiving end of channel `name` from `rank` with a ring of `size` bytes, a power of two from 256 to 1 MiB;
 * 0: STRATA_CHANNEL_SIZE. Does not wait for the sender, but while the path to it is lost, and where all 1024 rings
 * of a pair are in use, for one that is being closed, until its sender has made progress. As strata_channel_open_send.
 */
STRATA_API int strata_channel_open_recv(strata_t *s, int rank, const char *name, size_t size,
                                        strata_channel_receiver_t **out);

/* The place for a message of `length` bytes, to be written there; stands until commit or the next reserve. A message
 * that is longer than the ring less STRATA_CHANNEL_HEAD gets memory of its own, where it stays until the receiver has
 * taken it. A channel keeps two such messages; the reservation for a third one waits until the receiver has taken one.
 * STRATA_ERR_NOMEM: there is no such memory. */
STRATA_API int strata_channel_reserve(strata_channel_sender_t *c, size_t length, int64_t limit_ms,
                                      strata_channel_view_t *view);
/* The first `length` bytes of the place are the next message. It leaves at once when nothing of this channel is in
 * flight; otherwise it may wait for others to leave with: until some have gathered, flush, close or the context's next
 * progress. STRATA_ERR_ARG: nothing is reserved, or less than that. */
STRATA_API int strata_channel_commit(strata_channel_sender_t *c, size_t length);
/* Reserves, copies, commits. `data` may be used again on return. Without a limit, and from mca_base_channel_direct_min
 * bytes on, a receiver that waits in recv may be given the message straight from `data` instead. */
STRATA_API int strata_channel_send(strata_channel_sender_t *c, const void *data, size_t length, int64_t limit_ms);
/* Sends held-back messages now. */
STRATA_API int strata_channel_flush(strata_channel_sender_t *c);
/* Whether the receiver has taken all messages longer than the ring; makes no progress and does not wait. Until then it
 * may need progress of this process. STRATA_OK; STRATA_ERR_AGAIN: not yet; or what has broken the channel. Any thread
 * may call this function, also while another one uses the end. */
STRATA_API int strata_channel_taken(strata_channel_sender_t *c);
/* Ends the stream without waiting for the receiver to take it; then close. Takes a limit, as room may be needed. */
STRATA_API int strata_channel_end(strata_channel_sender_t *c, int64_t limit_ms);
/* Ends the stream and waits until the receiver has released all; then strata_channel_close_send does not wait. */
STRATA_API int strata_channel_finish(strata_channel_sender_t *c, int64_t limit_ms);
/* Ends the stream, waits until the receiver has released all, and frees the end. STRATA_OK: all was released. Otherwise
 * the error that broke the channel; the end is freed in any case. */
STRATA_API int strata_channel_close_send(strata_channel_sender_t *c);
/* Gives the stream up and frees the end, without waiting until the receiver has released anything: puts under way are
 * waited for. The receiver gets what has arrived, up to a long message that it has not moved, then STRATA_ERR_PEER; one
 * that opens later gets that at once. Memory of long messages stays until the receiver closes, or strata_finalize. */
STRATA_API int strata_channel_abort_send(strata_channel_sender_t *c);

/* The next message, where it landed. It is held until it is released; the next peek gives the one behind it. A message
 * longer than the ring is moved to memory of the receiver first, which may take several calls with a limit.
 * STRATA_CHANNEL_ENDED: none comes. STRATA_ERR_NOMEM: no such memory; strata_channel_recv still takes it. */
STRATA_API int strata_channel_peek(strata_channel_receiver_t *c, int64_t limit_ms, strata_channel_view_t *view);
/* Releases a held message, in any order; its place may be reused when all older ones are released, too.
 * STRATA_ERR_ARG: it is not held, and nothing changes. */
STRATA_API int strata_channel_release(strata_channel_receiver_t *c, const strata_channel_view_t *view);
/* Copies the next message to `buffer` of `size` bytes, and its length to *length unless that is NULL.
 * STRATA_ERR_TRUNCATE: it was longer; the excess is lost. A message longer than the ring is moved straight to the
 * buffer; once that has begun the limit does not hold. STRATA_CHANNEL_ENDED. STRATA_ERR_STATE: a message is held. */
STRATA_API int strata_channel_recv(strata_channel_receiver_t *c, void *buffer, size_t size, size_t *length,
                                   int64_t limit_ms);
/* Frees the end; waits only for gets of a long message that are in flight. Before STRATA_CHANNEL_ENDED was seen, or
 * with messages held, the sender's calls give STRATA_ERR_PEER from now on. The ring's memory stays until the sender has
 * closed, too. */
STRATA_API int strata_channel_close_recv(strata_channel_receiver_t *c);

/* Makes a set of receiving ends, for a thread that takes from any of them. The thread that uses it uses its ends, too.
 * STRATA_ERR_NOMEM. */
STRATA_API int strata_channel_set_create(strata_t *s, strata_channel_set_t **out);
/* Frees it. STRATA_ERR_STATE: there are ends in it. */
STRATA_API int strata_channel_set_destroy(strata_channel_set_t *set);
/* Adds an end of the same context; closing the end removes it. STRATA_ERR_STATE: it is in a set. */
STRATA_API int strata_channel_set_add(strata_channel_set_t *set, strata_channel_receiver_t *c);
/* Removes it. */
STRATA_API int strata_channel_set_remove(strata_channel_set_t *set, strata_channel_receiver_t *c);
/* Returns an end with a message, an end of stream or an error for the next peek or recv; such ends take turns. A long
 * message is moved by these calls, and its end is not named again before it is there. The wait is one for all, asleep
 * if it takes long. STRATA_CHANNEL_ENDED: the set is empty. */
STRATA_API int strata_channel_set_next(strata_channel_set_t *set, int64_t limit_ms, strata_channel_receiver_t **out);

#ifdef __cplusplus
}
#endif
#endif

/* The landing ring: a ring in the receiver's memory that one sender fills by puts with notice (notify.h). Messages are
 * consumed in the order of their slots, whatever the order of the notices; consumption frees room. This header has the
 * arithmetic of both ends, without data transfer; landing_ends.h has the ends of a ring between two processes.
 * docs/design/landing_ring.md describes slots, notices, credits and checks.
 *
 * Positions count lines of the ring since its beginning. Not thread safe. */
#ifndef STRATA_SDK_LANDING_RING_H
#define STRATA_SDK_LANDING_RING_H

#include <strata/sdk/landing_view.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a line: slots are made of whole lines. */
#define ST_LANDING_LINE 64u
/* Bytes of a slot's header. */
#define ST_LANDING_HEAD 16u
/* Smallest ring, bytes. */
#define ST_LANDING_LEAST 256u
/* Largest ring, bytes. */
#define ST_LANDING_MOST (1u << 20)
/* Names of rings of one sender at one receiver. */
#define ST_LANDING_NAMES 1024u
/* Maximum number of puts in flight of one ring. */
#define ST_LANDING_PUTS 16u
/* Maximum number of credits that the sender has not acknowledged. */
#define ST_LANDING_CREDITS 4u

/* Result of peek: the sender has ended the ring. */
#define ST_LANDING_ENDED 1

/* Whether a notice is a credit, for the sender of a ring, or announces data, for the receiver. */
static inline bool st_landing_is_credit(uint32_t notice)
{
    return notice >> 27 & 1;
}
/* The name of the notice's ring, below ST_LANDING_NAMES; from the peer, so it may not exist. */
static inline uint32_t st_landing_name(uint32_t notice)
{
    return notice >> 17 & (ST_LANDING_NAMES - 1);
}

/* A notice of the client to the receiver of a ring, neither data of a slot nor credit. */
static inline uint32_t st_landing_client_notice(uint32_t name)
{
    return name << 17 | 1u << 16;
}
/* Whether a notice is a client's. */
static inline bool st_landing_is_client_notice(uint32_t notice)
{
    return !st_landing_is_credit(notice) && (notice >> 16 & 1);
}

/* ---- the sender ---- */

/* Starts a put of len bytes from `offset` of the staging ring to the same place of the ring, with this notice. `which`
 * < ST_LANDING_PUTS identifies it among those in flight. STRATA_OK: in flight, st_landing_put_done follows. 1: done.
 * STRATA_ERR_AGAIN: nothing accepted; st_landing_flush repeats it. Any other error breaks the ring. */
typedef int (*st_landing_put_fn)(void *arg, uint32_t which, uint32_t offset, uint32_t len, uint32_t notice);

/* The sender's end. Its members are the ring's own; `rc`, `starved` and `why` may be read. */
struct st_landing_out {
    char *staging;         /* the staging ring */
    st_landing_put_fn put; /* the user's */
    void *arg;             /* its first argument */
    uint32_t lines;        /* of the ring, a power of two */
    uint32_t name;         /* of the ring, in its place in a notice */
    int rc;                /* STRATA_OK, or the error that broke the ring */
    const char *why;       /* then, for a log; or NULL */
    uint64_t committed;    /* position behind the last slot */
    uint64_t due;          /* that is to be put up to here */
    uint64_t sent;         /* behind the last put that was taken */
    uint64_t block;        /* up to here slots belong to puts that have begun */
    uint64_t last;         /* of the last slot */
    uint64_t idle;         /* no put that has not ended reads lines below */
    uint64_t released;     /* the receiver has released the slots below */
    uint64_t ask_end;      /* behind the last ASK slot */
    uint32_t number;       /* of the next slot */
    uint32_t reserved;     /* bytes, or UINT32_MAX: nothing is reserved */
    uint32_t pad;          /* bytes that the last slot leaves of its last line */
    uint32_t block_pad;    /* that the last slot of the block leaves */
    uint32_t seen;         /* credits taken */
    uint32_t ahead;        /* bit of the number of each that has overtaken an older one, and waits for it */
    uint32_t place[ST_LANDING_CREDITS]; /* what these release */
    uint32_t acknowledged;              /* as the last slot says */
    uint32_t n_puts;                    /* under way */
    uint32_t oldest;                    /* of them */
    uint64_t put_end[ST_LANDING_PUTS];  /* position behind each */
    uint16_t puts_done;                 /* bit of each that has ended before an older one */
    bool ended;                         /* the END slot is committed */
    bool starved;                       /* the last put met STRATA_ERR_AGAIN: st_landing_flush is to be called later */
    bool starting;                      /* a put is being started */
};

/* Makes one of a ring of `size` bytes, a power of two. staging: size bytes, aligned to a line. STRATA_ERR_ARG. */
ST_API int st_landing_out_create(struct st_landing_out *out, char *staging, uint32_t size, uint32_t name,
                                 st_landing_put_fn put, void *arg);
/* Whether st_landing_send can send a message of len bytes, len < ST_LANDING_MOST: nothing is in flight or pending,
 * there is room, and the slot does not wrap. */
static inline bool st_landing_goes_at_once(const struct st_landing_out *out, uint32_t len)
{
    uint32_t lines = (len + ST_LANDING_HEAD + ST_LANDING_LINE - 1) / ST_LANDING_LINE;
    uint32_t line = (uint32_t)out->committed & (out->lines - 1);

    return out->n_puts == 0 && out->sent == out->committed && !out->ended && out->rc == STRATA_OK &&
           line + lines <= out->lines && lines <= out->lines - (uint32_t)(out->committed - out->released);
}
/* Reserves, copies, commits and puts a message for which st_landing_goes_at_once is true. STRATA_OK: the put has begun.
 * STRATA_ERR_AGAIN: nothing accepted. Otherwise the error that broke the ring. */
ST_API int st_landing_send(struct st_landing_out *out, const void *data, uint32_t len);
/* Sends one slot by a message of the client instead of a put: its head, ST_LANDING_HEAD bytes, and its message, len
 * bytes at data, with a notice. 1: sent, data may be used again. STRATA_ERR_AGAIN: nothing accepted. Any other error
 * breaks the ring. */
typedef int (*st_landing_slot_fn)(void *arg, const void *head, const void *data, uint32_t len, uint32_t notice);
/* Whether st_landing_send_by can send a message of len bytes, len < ST_LANDING_MOST: nothing is pending, and there is
 * room. */
static inline bool st_landing_goes_by(const struct st_landing_out *out, uint32_t len)
{
    uint32_t lines = (len + ST_LANDING_HEAD + ST_LANDING_LINE - 1) / ST_LANDING_LINE;

    return out->sent == out->committed && !out->ended && out->rc == STRATA_OK && !out->starting &&
           lines <= out->lines - (uint32_t)(out->committed - out->released);
}
/* Sends a message for which st_landing_goes_by is true, without a copy on this side. Returns as st_landing_send. */
ST_API int st_landing_send_by(struct st_landing_out *out, const void *data, uint32_t len, st_landing_slot_fn send,
                              void *arg);
/* Reserves space for a message of len bytes, into which the caller writes; valid until commit or the next reserve.
 * STRATA_ERR_AGAIN: no room; try again when a credit has arrived or a put has ended. STRATA_ERR_ARG: longer than the
 * ring; STRATA_ERR_STATE: after the end; otherwise the error that broke the ring. */
ST_API int st_landing_reserve(struct st_landing_out *out, uint32_t len, struct st_landing_view *view);
/* How a message is committed. */
enum {
    ST_LANDING_KEEP = 1u << 0,  /* it may wait for the next commit or flush, to share a put */
    ST_LANDING_MARKED = 1u << 1 /* a mark in the receiver's view, with a meaning given by the client */
};
/* Commits the first len bytes of the reserved space as the next message. how: bits ST_LANDING_KEEP, ST_LANDING_MARKED.
 * STRATA_OK: the ring will send it. STRATA_ERR_ARG; otherwise the error that broke the ring. */
ST_API int st_landing_commit(struct st_landing_out *out, uint32_t len, unsigned how);
/* Puts committed messages that were not put yet. STRATA_OK: all of them are in flight, or wait for older puts.
 * STRATA_ERR_AGAIN: out->starved. Otherwise the error that broke the ring. */
ST_API int st_landing_flush(struct st_landing_out *out);
/* Ends the ring: the receiver gets ST_LANDING_ENDED after the last message. STRATA_ERR_AGAIN: no room; other errors as
 * reserve. */
ST_API int st_landing_end(struct st_landing_out *out);
/* Handles the end of a put. */
ST_API void st_landing_put_done(struct st_landing_out *out, uint32_t which, int rc);
/* Handles an arrived credit. An invalid one breaks the ring. */
ST_API void st_landing_credit(struct st_landing_out *out, uint32_t notice);
/* Breaks the ring with rc, unless it is broken already, because the peer or the path is lost. */
ST_API void st_landing_out_fail(struct st_landing_out *out, int rc);
/* Whether the receiver has released everything up to the end, and no message of the ring to this side is in flight. */
ST_API bool st_landing_out_finished(const struct st_landing_out *out);

/* ---- the receiver ---- */

/* Sends a notice to the sender. `which` < ST_LANDING_CREDITS. STRATA_OK or 1: sent. STRATA_ERR_AGAIN: nothing accepted;
 * st_landing_return repeats it. Any other error: as st_landing_in_fail with it. */
typedef int (*st_landing_tell_fn)(void *arg, uint32_t which, uint32_t notice);

/* The receiver's end. Its members are the ring's own; `rc`, `ready`, `ended`, `starved` and `why` may be read. */
struct st_landing_in {
    const char *ring;        /* which the peer writes */
    uint64_t *landed;        /* from `read` on: bit of each line at which a put has begun whose notice came; below, of
                              * each line that was released, or held no message, while an older message is held */
    st_landing_tell_fn tell; /* the user's */
    void *arg;               /* its first argument */
    uint32_t lines;          /* of the ring, a power of two */
    uint32_t name;           /* of the ring, in its place in a notice */
    int rc;                  /* STRATA_OK, or the error that broke the ring */
    const char *why;         /* then, for a log; or NULL */
    uint64_t read;           /* position of the slot that is to be peeked next */
    uint64_t released;       /* everything below was given back */
    uint64_t told;           /* and the sender knows, or will */
    uint64_t ask_end;        /* behind the last ASK slot; its credit is due when that is released */
    uint32_t number;         /* of the next slot */
    uint32_t held;           /* messages that were peeked and not released */
    uint32_t credits;        /* that were given */
    uint32_t acknowledged;   /* of them the sender has received */
    uint32_t len;            /* of the message at `read`, while ready */
    uint32_t slot_lines;     /* of its slot */
    bool ready;              /* the message at `read` has landed and was checked */
    bool marked;             /* and is marked */
    bool joined;             /* the next slot came by the put of the one before */
    bool joins;              /* the same of the slot behind the one that is ready */
    bool ended;              /* the END slot was read: no message follows */
    bool starved;            /* a credit is due, and met STRATA_ERR_AGAIN or may wait: call st_landing_return later */
    bool drains;             /* `rc` is that of st_landing_in_fail: what has landed before is still handed out */
};

/* Makes one of a ring of `size` bytes, a power of two, aligned to a line. STRATA_ERR_ARG, STRATA_ERR_NOMEM. */
ST_API int st_landing_in_create(struct st_landing_in *in, const char *ring, uint32_t size, uint32_t name,
                                st_landing_tell_fn tell, void *arg);
/* Frees what it holds; one of zeros has nothing. */
ST_API void st_landing_in_destroy(struct st_landing_in *in);
/* Handles an arrived data notice. An invalid one breaks the ring. */
ST_API void st_landing_notice(struct st_landing_in *in, uint32_t notice);
/* Handles a notice that brings its data instead of a put: len bytes for the place that the notice names. An invalid one
 * breaks the ring. */
ST_API void st_landing_arrive(struct st_landing_in *in, uint32_t notice, const void *data, uint32_t len);
/* Handles a slot that a message brought (st_landing_slot_fn). `to`: buffer of `size` bytes of a reader that waits for
 * the next message, or NULL. True: the slot was the next message, and was copied to the buffer and released, as by
 * st_landing_take. An invalid one breaks the ring. */
ST_API bool st_landing_arrive_slot(struct st_landing_in *in, uint32_t notice, const void *head, const void *data,
                                   uint32_t len, void *to, size_t size);
/* Returns the next message where it landed; the peer can still change its bytes. The message is held until release; the
 * next peek returns the one behind it. STRATA_ERR_AGAIN: no message has arrived. ST_LANDING_ENDED: the ring has ended.
 * Otherwise the error that broke the ring. */
ST_API int st_landing_peek(struct st_landing_in *in, struct st_landing_view *view);
/* Copies up to `size` bytes of the next message and releases it: peek and release in one, for a message without a mark
 * while none is held. *len: its length. STRATA_ERR_AGAIN: no message has arrived. STRATA_ERR_UNSUPPORTED: call peek. */
ST_API int st_landing_take(struct st_landing_in *in, void *to, size_t size, uint32_t *len);
/* Releases a held message, in any order; its room is freed when all older messages are released, too. STRATA_ERR_ARG:
 * the message is not held; otherwise the error that broke the ring. */
ST_API int st_landing_release(struct st_landing_in *in, const struct st_landing_view *view);
/* Sends due credit, if there is any. */
ST_API void st_landing_return(struct st_landing_in *in);
/* For a reader that holds messages and finds no other: sends credit for all released room, however little, if the
 * sender may wait for it. peek does so itself. */
ST_API void st_landing_return_rest(struct st_landing_in *in);
/* Breaks the ring with rc, unless it is broken already, because the peer or the path is lost. Messages that have landed
 * can still be peeked and released; then peek returns rc, or ST_LANDING_ENDED after the end. */
ST_API void st_landing_in_fail(struct st_landing_in *in, int rc);
/* Whether everything up to the end was released and the sender has been notified: it does not write any more. */
ST_API bool st_landing_in_finished(const struct st_landing_in *in);
/* Memory that it holds. */
ST_API size_t st_landing_in_bytes(const struct st_landing_in *in);

#ifdef __cplusplus
}
#endif
#endif

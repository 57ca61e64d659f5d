/* Frames of one size between processes, over sockets that never block. Each process listens. A sender opens a
 * connection unless one to that rank exists; idle connections are closed. The number of connections, the memory of each
 * and the time for a caller's identification are bounded. A frame may be lost, duplicated or late: its sender repeats
 * it until it is answered. Under the lock of its owner. */
#ifndef STRATA_SDK_FRAMES_H
#define STRATA_SDK_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process's end of all its connections. */
struct st_frames;

/* The owner of frames. Its functions are called by st_frames_poll; frames are aligned to 8 bytes. */
struct st_frames_owner {
    void *arg;      /* for the functions */
    uint32_t magic; /* first on the wire, in the order of this machine; then come `size`, and the frame */
    uint32_t size;  /* bytes of a frame */
    /* Returns in *rank the rank that a frame names as its sender, or -1. True: the frame is authentic, so that answers
     * use the connection on which it has arrived. */
    bool (*sender)(void *arg, const void *frame, int *rank);
    bool (*take)(void *arg, const void *frame); /* may send; false: not of this job, and the connection is closed */
    void (*refused)(void *arg);                 /* a caller sent an invalid frame, or sent it too late */
    void (*in_vain)(void *arg, int rank); /* a connection to the rank ended without data: the address may be wrong */
};

/* Listens, on all addresses or on loopback only, and returns the port. NULL: the reason is in errno. */
ST_API struct st_frames *st_frames_open(const struct st_frames_owner *owner, bool loopback, uint16_t *port);
/* Closes all connections and frees f; NULL is ignored. */
ST_API void st_frames_close(struct st_frames *f);
/* Returns a descriptor that is readable when st_frames_poll has work. */
ST_API int st_frames_fd(const struct st_frames *f);
/* Sends a frame to a rank; without a connection to it, connects to `address` (16 bytes as in sdk/socket.h, NULL: none)
 * and `port`. STRATA_ERR_AGAIN: not sent; STRATA_ERR_UNREACHABLE: not sent, and a connection to that address cannot be
 * started. */
ST_API int st_frames_send(struct st_frames *f, int rank, const void *frame, const uint8_t *address, uint16_t port);
/* Handles arrived frames; costs a system call. Returns the number of events. */
ST_API int st_frames_poll(struct st_frames *f);
/* Bytes of memory that it holds. */
ST_API size_t st_frames_bytes(const struct st_frames *f);

#ifdef __cplusplus
}
#endif
#endif

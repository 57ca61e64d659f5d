/* Channels between independently started processes. One process listens at an address, others connect to it; each pair
 * then has a context in which it opens channels by number (<strata/channel.h>): the process that listens is number 0,
 * those that connect are 1, 2, ... in the order in which they proved the secret. strata_channel_accept never returns a
 * number twice. Guide: docs/channels.md; design: docs/design/channel_link.md.
 *
 * Address: "HOST:PORT", "[IPV6]:PORT", ":PORT" (to listen on all addresses), or the path of a socket, which contains a
 * `/`, for processes of one machine. A pair uses the best transport that both processes have, on one machine shared
 * memory. If it cannot put, opening a channel returns STRATA_ERR_UNSUPPORTED.
 *
 * Secret: both sides need the same secret of 16 bytes or more: $STRATA_CHANNEL_SECRET, or the first line of the file
 * $STRATA_CHANNEL_SECRET_FILE, which only its owner may read. The secret is never sent. */
#ifndef STRATA_CHANNEL_LINK_H
#define STRATA_CHANNEL_LINK_H

#include <strata/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process that listens, or one that has connected. One thread at a time may use it; its channels as usual. */
typedef struct strata_channel_link strata_channel_link_t;

/* Listens at `address`. `config` as for strata_init, without `host`; may be NULL. The reason for an error is written to
 * its error_text, or to stderr where there is none and after this call. STRATA_ERR_ARG: no valid address, or no secret;
 * STRATA_ERR_SYSTEM: the process cannot listen at the address; otherwise errors of strata_init. */
STRATA_API int strata_channel_listen(const char *address, const strata_config_t *config, strata_channel_link_t **out);
/* Accepts the next process that has connected and made its context, and returns its number. A caller that fails to
 * prove the secret within 5 s is refused with a warning and gets no number; a caller cannot delay other callers;
 * handshakes progress only inside this call. A call that waits makes progress of the context: at STRATA_THREAD_SINGLE
 * no other thread may use the context meanwhile. limit_ms as in <strata/channel.h>: STRATA_ERR_AGAIN,
 * STRATA_ERR_TIMEOUT. STRATA_ERR_ARG: the link is not listening. STRATA_ERR_NOMEM, STRATA_ERR_SYSTEM. */
STRATA_API int strata_channel_accept(strata_channel_link_t *link, int64_t limit_ms, int *number);
/* Connects to a process that listens and accepts, or will do so within the limit. STRATA_ERR_UNREACHABLE: no process
 * listens there; STRATA_ERR_PEER: the process refuses the secret, does not know it, or has ended; STRATA_ERR_TIMEOUT;
 * otherwise errors of strata_channel_listen. */
STRATA_API int strata_channel_connect(const char *address, int64_t limit_ms, const strata_config_t *config,
                                      strata_channel_link_t **out);
/* The context in which channels are opened, valid until the link is closed; strata_rank returns the process's own
 * number. The caller does not finalize it. */
STRATA_API strata_t *strata_channel_link_context(const strata_channel_link_t *link);
/* The complete address to which others connect: the port that was chosen for port 0, and an address of this machine
 * where no host was given. Valid until the link is closed. */
STRATA_API const char *strata_channel_link_address(const strata_channel_link_t *link);
/* Ends the context, as strata_finalize, and the link. Close every channel first. */
STRATA_API int strata_channel_link_close(strata_channel_link_t *link);

#ifdef __cplusplus
}
#endif
#endif

/* Channels between independently started processes. One process listens at an address, others connect to it; each pair
 * then has a context in which it opens channels by number (<strata/channel.h>): the process that listens is number 0,
 * those that connect are 1, 2, ... in the order in which they proved the secret. A number that accept has given is not
 * given again. docs/design/channel_link.md.
 *
 * Address: "HOST:PORT", "[IPV6]:PORT", ":PORT" (to listen on all addresses), or the path of a socket, which has a `/`
 * in it, for processes of one machine. The transport of a pair is the best that both have, shared memory on one
 * machine; one that cannot put serves no channel, and opening one is STRATA_ERR_UNSUPPORTED.
 *
 * Secret: both sides have to know the same, 16 bytes or more: $STRATA_CHANNEL_SECRET, or the first line of the file
 * $STRATA_CHANNEL_SECRET_FILE, which others must not be able to read. Neither goes over the wire. */
#ifndef STRATA_CHANNEL_LINK_H
#define STRATA_CHANNEL_LINK_H

#include <strata/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process that listens, or one that has connected. One thread at a time may use it; its channels as usual. */
typedef struct strata_channel_link strata_channel_link_t;

/* Listens at `address`. `config` as for strata_init, without `host`; may be NULL. What is wrong, by name, is written to
 * its error_text, or to stderr where there is none and when this call is over. STRATA_ERR_ARG: no address, or no
 * secret; STRATA_ERR_SYSTEM: the address cannot be had; as strata_init. */
STRATA_API int strata_channel_listen(const char *address, const strata_config_t *config, strata_channel_link_t **out);
/* Takes the next process that has connected and made its context, and gives its number. One that fails to prove the
 * secret within 5 s is refused with a warning and not counted; a caller cannot delay other callers; handshakes progress
 * only inside this call. A call that waits makes progress of the context, so at STRATA_THREAD_SINGLE no other thread
 * may use that meanwhile. limit_ms as in <strata/channel.h>: STRATA_ERR_AGAIN, STRATA_ERR_TIMEOUT. STRATA_ERR_ARG: it
 * is not listening. STRATA_ERR_NOMEM, STRATA_ERR_SYSTEM. */
STRATA_API int strata_channel_accept(strata_channel_link_t *link, int64_t limit_ms, int *number);
/* Connects to a process that listens, or will within the limit, and that accepts. STRATA_ERR_UNREACHABLE: nobody
 * listens there; STRATA_ERR_PEER: it refuses the secret, does not know it, or went away; STRATA_ERR_TIMEOUT; as
 * strata_channel_listen. */
STRATA_API int strata_channel_connect(const char *address, int64_t limit_ms, const strata_config_t *config,
                                      strata_channel_link_t **out);
/* The context in which channels are opened, valid until the link is closed; strata_rank returns the process's own
 * number. The caller does not finalize it. */
STRATA_API strata_t *strata_channel_link_context(const strata_channel_link_t *link);
/* The address in full, as others may connect to it when a port was 0, or there was no host: then with an address of
 * this machine. Valid until the link is closed. */
STRATA_API const char *strata_channel_link_address(const strata_channel_link_t *link);
/* Ends the context, as strata_finalize, and the link. Close every channel before. */
STRATA_API int strata_channel_link_close(strata_channel_link_t *link);

#ifdef __cplusplus
}
#endif
#endif

/* Stream sockets that never block, and addresses as in cards: 16 bytes, IPv6 or IPv4 mapped into it. */
#ifndef STRATA_SDK_SOCKET_H
#define STRATA_SDK_SOCKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <strata/sdk/component.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ifaddrs;

/* 127.0.0.1. */
ST_API extern const uint8_t st_socket_loopback[16];
/* Converts an address for system calls; returns its length. */
ST_API socklen_t st_socket_address(const uint8_t address[16], uint16_t port, struct sockaddr_storage *out);
/* Returns the address of an interface; false: other machines cannot use it. */
ST_API bool st_socket_interface(const struct ifaddrs *i, uint8_t out[16]);
/* Returns up to `most` addresses at which other machines may reach this one, IPv4 first; the rest is zeroed. */
ST_API void st_socket_addresses(uint8_t (*out)[16], uint32_t most);

/* Returns a socket that listens, on all addresses or on loopback only, and its port. -1: the reason is in errno. */
ST_API int st_socket_listen(bool loopback, uint16_t *port);
/* The same at the first free port of a range; first == 0: any. EADDRINUSE: all ports of the range are taken. */
ST_API int st_socket_listen_in(bool loopback, uint16_t first, uint16_t last, uint16_t *port);
/* The same at one address of any family; IPv6 accepts IPv4 as well. Port 0: any; getsockname(2) returns it. */
ST_API int st_socket_listen_at(const struct sockaddr *at, socklen_t n);
/* Returns the port of a listening socket; 0: it has none. */
ST_API uint16_t st_socket_port(int fd);
/* Returns a socket that connects to an address and port. -1: the connection failed at once. */
ST_API int st_socket_dial(const uint8_t address[16], uint16_t port);
/* The same to an address of any family. -1: the reason is in errno. */
ST_API int st_socket_dial_at(const struct sockaddr *at, socklen_t n);
/* Disables the delay of short messages (TCP_NODELAY). Sockets of the functions above have it; accepted ones need it. */
ST_API void st_socket_no_delay(int fd);

/* Reads up to `size` bytes; returns their number. 0: no data; STRATA_ERR_PEER: closed by the other side, or broken. */
ST_API ssize_t st_socket_read(int fd, void *buf, size_t size);
/* Writes up to `size` bytes; returns their number. 0: full, or not connected yet; STRATA_ERR_PEER: broken. */
ST_API ssize_t st_socket_write(int fd, const void *buf, size_t size);
/* Calls send(2) once. Returns the bytes that the socket accepted; 0: no room, with the reason in errno; -1: an error.
 */
ST_API ssize_t st_socket_send(int fd, const void *buf, size_t size);
/* The same by sendmsg(2), which costs more, with additional flags. */
ST_API ssize_t st_socket_sendmsg(int fd, const struct msghdr *msg, int flags);

#ifdef __cplusplus
}
#endif
#endif

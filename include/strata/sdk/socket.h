/* Stream sockets that never block, and addresses as cards carry them: 16 bytes, IPv6 or IPv4 mapped into it. */
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
/* The address for system calls; returns its length. */
ST_API socklen_t st_socket_address(const uint8_t address[16], uint16_t port, struct sockaddr_storage *out);
/* The address of an interface; false: it is of no use to other machines. */
ST_API bool st_socket_interface(const struct ifaddrs *i, uint8_t out[16]);
/* This machine's addresses at which others may reach it, IPv4 first; zeroes behind them. */
ST_API void st_socket_addresses(uint8_t (*out)[16], uint32_t most);

/* A socket that listens, on all addresses or on loopback only, and its port. -1: errno says why. */
ST_API int st_socket_listen(bool loopback, uint16_t *port);
/* The same at the first free port of a range; first == 0: any. EADDRINUSE: all ports of the range are taken. */
ST_API int st_socket_listen_in(bool loopback, uint16_t first, uint16_t last, uint16_t *port);
/* The same at one address of any family; IPv6 takes IPv4 as well. A port of 0: any, which getsockname(2) tells. */
ST_API int st_socket_listen_at(const struct sockaddr *at, socklen_t n);
/* The port of a socket that listens; 0: it has none. */
ST_API uint16_t st_socket_port(int fd);
/* A socket that connects to an address and port: -1 when that fails at once. */
ST_API int st_socket_dial(const uint8_t address[16], uint16_t port);
/* The same to an address of any family; errno says why it failed. */
ST_API int st_socket_dial_at(const struct sockaddr *at, socklen_t n);
/* Short messages of a TCP connection go at once. Sockets of the functions above have it; accepted ones need it. */
ST_API void st_socket_no_delay(int fd);

/* Reads what has come. 0: nothing; STRATA_ERR_PEER: closed by the other side, or broken. */
ST_API ssize_t st_socket_read(int fd, void *buf, size_t size);
/* Writes what the socket takes. 0: nothing now, it is full or not connected yet; STRATA_ERR_PEER: it is broken. */
ST_API ssize_t st_socket_write(int fd, const void *buf, size_t size);
/* One call of send(2). Bytes that the socket took; 0: it has no room, errno says of what; -1: an error. */
ST_API ssize_t st_socket_send(int fd, const void *buf, size_t size);
/* The same by sendmsg(2), which costs more, with these flags beside its own. */
ST_API ssize_t st_socket_sendmsg(int fd, const struct msghdr *msg, int flags);

#ifdef __cplusplus
}
#endif
#endif

/* Addresses: which ones a process publishes, and in which order a peer's are dialled. */
#ifndef TCP_ADDRESS_H
#define TCP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include "wire.h"

struct ifaddrs;

/* A list of interfaces, by name or network. */
struct tcp_filter;

/* Reads the list; an empty one gives *out = NULL. STRATA_ERR_PARAM: `why` says which item is wrong. STRATA_ERR_NOMEM.
 */
int tcp_filter_parse(const char *list, struct tcp_filter **out, char *why, size_t why_size);
void tcp_filter_free(struct tcp_filter *f);
/* True when an item names the interface, the label of the address (eth0:1) or the address; false for a NULL filter. */
bool tcp_filter_has(const struct tcp_filter *f, const char *name, const uint8_t ip[16]);

/* The addresses of `all` to publish, the most likely to work first; returns how many. One of loopback is the
 * last, unless the lists leave it out. left_out: how many find no room, not counting loopback. */
uint32_t tcp_addresses(const struct ifaddrs *all, const struct tcp_filter *include, const struct tcp_filter *exclude,
                       struct tcp_address out[TCP_ADDRESSES], uint32_t *left_out);

/* The order in which to dial: places of `theirs` by likelihood, seen from a process with the addresses `ours`. `local`:
 * both are on one machine; else loopback is left out where there are others. Returns how many. */
uint32_t tcp_order(const struct tcp_address *theirs, uint32_t n, const struct tcp_address *ours, uint32_t n_ours,
                   bool local, uint8_t order[TCP_ADDRESSES]);

/* A speed in Mbit/s as a byte, with an error of an eighth at most, and what that says; 0: not known. */
uint8_t tcp_speed_code(uint64_t mbits);
uint64_t tcp_speed_mbits(uint8_t code);

/* links.c: the links by which the two can be joined at once, each by an interface of its own at both ends: places in
 * `theirs`, and the speed of the slower end, as a code; returns how many. Both ends find the same links in the same
 * order, where no process has several addresses in a network. */
uint32_t tcp_links(const struct tcp_address *ours, uint32_t n_ours, const struct tcp_address *theirs, uint32_t n_theirs,
                   uint8_t link[TCP_ADDRESSES], uint8_t speed[TCP_ADDRESSES]);
/* The bandwidth of link `i` of n that are used at once: `bandwidth` for the fastest, and its part of that for a slower
 * one. One of unknown speed counts as the fastest. */
uint32_t tcp_link_bandwidth(const uint8_t *speed, uint32_t n, uint32_t i, uint32_t bandwidth);
/* Interfaces of ours that may be one end of a link. */
uint32_t tcp_interfaces(const struct tcp_address *ours, uint32_t n);

/* Links of this process and a peer. */
struct tcp_pair {
    int rank; /* -1: none was asked for yet */
    uint8_t n;
    uint8_t link[TCP_ADDRESSES];  /* places in the peer's card */
    uint8_t speed[TCP_ADDRESSES]; /* as tcp_speed_code */
};

/* "10.0.0.1" or "fd00::1". */
#define TCP_TEXT 48
const char *tcp_address_text(const uint8_t ip[16], char text[TCP_TEXT]);

#endif

/* Parameters of btl_tcp. */
#ifndef TCP_PARAMS_H
#define TCP_PARAMS_H

#include <stdbool.h>
#include <strata/sdk/component.h>

/* Defaults in KiB: another value is the user's. */
#define TCP_EAGER_LIMIT_KIB 64
#define TCP_RDMA_MIN_KIB    64

/* Bytes that are copied in the time of the two system calls of a frame, about: 5 us each, and 2 GB/s. */
#define TCP_FRAGMENT_COST (20u << 10)

#define TCP_PIECE_MAX                                                                                                  \
    ((uint64_t)1 << 20) /* bytes of a piece of a put or get, at most; a peer's longer one is refused */

struct tcp_params {
    char *if_include, *if_exclude, *ports, *zerocopy;
    size_t eager_limit, max_send, pipeline_send, rdma_min, piece, unsent, sndbuf, rcvbuf;
    int64_t latency_ns, bandwidth_mbs, connect_timeout_ms, handshake_timeout_ms, close_timeout_ms, strangers,
        timeout_ms, links, dials, coalesce_at;
    bool mend, bulk;
};

#define TCP_N_PARAMS 24
extern const struct st_param tcp_param_rows[TCP_N_PARAMS];

/* Reads "FIRST-LAST" or "PORT"; "" is any port, 0 to 0. */
bool tcp_ports_parse(const char *text, uint16_t *first, uint16_t *last);

#endif

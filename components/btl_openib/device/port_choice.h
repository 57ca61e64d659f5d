/* Limits chosen by what a port is: pure functions. A parameter that is not 0 wins over all of them. */
#ifndef IB_PORT_CHOICE_H
#define IB_PORT_CHOICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MB/s of data that the port carries each way; 1000 where its speed is none that is known here. */
uint32_t ib_bandwidth(const struct ibv_port_attr *a);
/* Defaults of parameters, by link layer and by who moves the bytes. */
struct ib_limits {
    uint32_t
        rdma_request;   /* 0: the device's. On Ethernet a lost packet makes the device repeat the rest of a request */
    uint8_t rdma_reads; /* four of 32 KiB: what 100 Gb/s carry in 10 us */
    uint32_t split_min; /* 0: never, as with hardware. Software moves bytes on the processor of whoever asks */
    uint32_t stream_limit; /* two copies over InfiniBand in software take less time than a rendezvous */
    uint32_t max_inline;   /* there it saves a buffer and its completion; Soft-RoCE keeps requests in kernel memory */
};
const struct ib_limits *ib_limits(bool software, bool ethernet);
/* Bytes of one RDMA work request, at most what the device can (0: it names no limit); wanted 0: that. */
#define IB_RDMA_LEAST (4u << 10)
uint32_t ib_longest_rdma(size_t wanted, uint32_t most);
/* Soft-RoCE, siw, softhca: no device in sysfs. */
bool ib_is_software(const struct ibv_device *d);

#endif

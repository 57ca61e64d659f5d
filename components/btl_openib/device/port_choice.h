/* Limits chosen by what a port is: pure functions. A parameter that is not 0 wins over all of them. */
#ifndef IB_PORT_CHOICE_H
#define IB_PORT_CHOICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MB/s of data that the port carries each way; 1000 where its speed is none that is known here. */
uint32_t ib_bandwidth(const struct ibv_port_attr *a);
/* Bytes of one RDMA work request: parameter rdma_request, the link layer, the device's limit (0: it names none). On
 * Ethernet a lost packet makes the device repeat the rest of the request, so that shorter ones lose less. */
#define IB_RDMA_ON_ETHERNET  (32u << 10)
#define IB_RDMA_LEAST        (4u << 10)
#define IB_MOST_READS        16u /* in flight to a peer, and served for it */
#define IB_READS_ON_ETHERNET 4u  /* 128 KiB: what 100 Gb/s carry in 10 us */
uint32_t ib_longest_rdma(size_t wanted, bool ethernet, uint32_t most);
/* Size from which sender and receiver move half a message each: parameter split_min; 0: never. Software moves bytes on
 * the processor of whoever asks, so that two ends take half the time; hardware gains nothing. */
#define IB_SPLIT_ON_ETHERNET   (64u << 10)
#define IB_SPLIT_ON_INFINIBAND (128u << 10)
size_t ib_split_min(size_t wanted, bool software, bool ethernet);
/* Size up to which a message is streamed: parameter stream_limit. A fragment over InfiniBand in software costs one copy
 * at each end, and two of these take less time than a rendezvous. */
#define IB_STREAM_LIMIT (32u << 10)
size_t ib_stream_limit(size_t wanted, bool software, bool ethernet);
/* Size up to which a message is copied into its work request: parameter max_inline. In software on InfiniBand that
 * saves a buffer and its completion; Soft-RoCE keeps work requests in kernel memory. */
#define IB_MAX_INLINE 192u
uint32_t ib_max_inline(size_t wanted, bool software, bool ethernet);
/* Times of the device's operations, ns, the least of some turns (port_trial.h). */
#define IB_TIMES_OF 65536u /* bytes of a copy and of a write */
struct ib_port_times {
    uint64_t sends;                  /* 8 bytes, until both ends have their completions */
    uint64_t writes_16k, writes_64k; /* RDMA writes until the completion */
    uint64_t posts_64k;              /* of that, in posting it: the processor of whoever asks */
    uint64_t copies_64k;             /* by memcpy */
    uint64_t registers;              /* 128 KiB, made and given back */
};
/* Thresholds that follow, in bytes, as st_btl_facts has them. */
struct ib_port_costs {
    uint32_t ask, alone;
    size_t rdma, split; /* split: 0: never */
};
/* A fragment costs a copy at either end; a message that is announced costs two short messages more, and a registration
 * at either end where none are kept. Each cost is the length at which the two are equal, between bounds within which a
 * buffer's size, and what is not measured, decide. Pure. */
struct ib_port_costs ib_port_costs(const struct ib_port_times *t, bool keeps, bool software);
#define IB_ASK_LEAST   (16u << 10)
#define IB_ASK_MOST    (128u << 10)
#define IB_ALONE_LEAST (8u << 10)
#define IB_RDMA_MOST   (4u << 20)
/* Soft-RoCE, siw, softhca: no device in sysfs. */
bool ib_is_software(const struct ibv_device *d);

#endif

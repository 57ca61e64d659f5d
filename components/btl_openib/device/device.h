/* One port of one device: its verbs objects, attributes and address, the limits that follow from them, and what its
 * operations take. */
#ifndef IB_DEVICE_H
#define IB_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/thresholds.h>
#include <strata/strata.h>
#include "params.h"

struct ib_module;

struct ib_device {
    strata_t *context;
    const struct ib_params *par;
    struct ibv_context *verbs;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_port_attr port_attr;
    struct ibv_device_attr attr;
    union ibv_gid gid;
    char name[IBV_SYSFS_NAME_MAX + 8]; /* device:port */
    uint8_t port, gid_index;
    bool global;                    /* addresses carry a GRH */
    bool software;                  /* nothing stands behind it in sysfs: Soft-RoCE, siw, softhca */
    bool ethernet;                  /* RoCE */
    bool cuts_packets;              /* messages travel as packets of the path's MTU; not in software on InfiniBand */
    bool dead;                      /* the device or one of its queues has failed: no further connections */
    const struct ib_limits *limits; /* of parameters that are 0 */
    enum ibv_mtu mtu;
    uint32_t place;    /* of this port among all that may be used: ib_rail_match */
    int distance;      /* distance.h; -1: unknown, counts as near */
    uint32_t max_rdma; /* bytes of one RDMA work request */
    uint8_t max_reads; /* RDMA reads in flight to a peer */
};

/* ---- port.c ---- */
/* Opens every port that is to be used; *n may be 0 with `why` saying so. With some, `why` may name what else the
 * parameter names, or cannot be used. */
int ib_ports_open(const struct ib_params *par, struct ib_device found[], size_t *n, char *why, size_t why_size);
bool ib_port_named(const struct ib_device *d); /* the parameter `devices` asks for it */
/* Reads state and address of the port again. */
enum ib_port_state { IB_PORT_DOWN, IB_PORT_SAME, IB_PORT_MOVED };
enum ib_port_state ib_port_refresh(struct ib_device *d);

/* ---- device.c ---- */
int ib_device_open(struct ib_device *d, char *why, size_t why_size); /* protection domain and channel */
void ib_device_close(struct ib_device *d);                           /* these; the port stays open */
uint16_t ib_device_partition(const struct ib_device *d);             /* 0: not known */
/* RDMA reads that the device serves per queue pair. */
uint8_t ib_device_reads(const struct ib_device *d);
/* Brings a reliably connected queue pair to INIT, with these access flags of ibv_reg_mr, and from there to RTS; *a has
 * the peer's number, path and packets, both packet sequence numbers, RNR timer and RDMA reads. An errno. */
int ib_device_qp_init(const struct ib_device *d, struct ibv_qp *qp, unsigned access);
int ib_device_qp_connect(const struct ib_device *d, struct ibv_qp *qp, struct ibv_qp_attr *a);
/* The path to a port with this address. */
struct ibv_ah_attr ib_device_path(const struct ib_device *d, const uint8_t gid[16], uint16_t lid);

int ib_device_nonblocking(int fd);
/* Keeps forks of this process from harming memory that a device uses, where the kernel does not and it is wanted
 * (docs/design/memory.md, "Fork"):
 * libibverbs then keeps registered pages out of children (ibv_fork_init(3)). Called before any registration. 0, or an
 * errno: a fork is dangerous. */
int ib_fork_prepare(bool wanted);
const char *ib_fork_why(int error); /* why it could not */

/* ---- init_error.c ---- */
enum ib_resource { IB_PDS, IB_CQS, IB_SRQS, IB_QPS, IB_MRS };
/* Describes an object that cannot be made: errno's text and, for ENOMEM, the limit that was probably hit: the device's
 * number of such objects, or the memory that this process may lock. */
void ib_init_error(const struct ib_device *d, enum ib_resource resource, const char *what, char *why, size_t why_size);

/* ---- port_choice.c: pure functions of what a port is ---- */
/* MB/s of data that the port carries each way; 1000 where its speed is none that is known here. */
uint32_t ib_bandwidth(const struct ibv_port_attr *a);
/* Defaults of parameters, by link layer and by who moves the bytes. */
struct ib_limits {
    uint32_t rdma_request; /* 0: the device's. A packet lost on Ethernet makes it repeat the rest of a request */
    uint8_t rdma_reads;    /* four of 32 KiB: what 100 Gb/s carry in 10 us */
    uint32_t split_min;    /* 0: never, as with hardware. Software moves bytes on the processor of whoever asks */
    uint32_t stream_limit; /* two copies over InfiniBand in software take less time than a rendezvous */
    uint32_t max_inline;   /* there it saves a buffer and its completion; Soft-RoCE keeps requests in kernel memory */
};
const struct ib_limits *ib_limits(bool software, bool ethernet);
/* Bytes of one RDMA work request, at most what the device can (0: it names no limit); wanted 0: that. */
#define IB_RDMA_LEAST (4u << 10)
uint32_t ib_longest_rdma(size_t wanted, uint32_t most);
/* Soft-RoCE, siw, softhca: no device in sysfs. */
bool ib_is_software(const struct ibv_device *d);

#define IB_PLACES 64u /* ports of a process that are looked at */

/* Sets of places: the k-th port that a process may use has place k, whether it can be opened or not. Places that both
 * have correspond to each other; the rest correspond in order. Returns the place of theirs for this one of ours; -1:
 * there is none. Both sides get the same pairs. */
int ib_rail_match(uint64_t ours, uint64_t theirs, uint32_t place);
/* The card of a place has the number of those before it. */
uint32_t ib_rail_number(uint64_t rails, uint32_t place);

/* ---- loop.c: two queue pairs of a module that are connected to each other, to measure the device without a peer ----
 */
#define IB_LOOP_DEPTH 8u
#define IB_LOOP_LIMIT 2000000u /* ns for one operation: as slow as that is no sample */

struct ib_loop {
    struct ibv_cq *cq;
    struct ibv_qp *qp[2]; /* the first one sends to the second */
};

/* inlined: bytes that a work request may carry. False: the device makes none, or does not connect to itself; nothing is
 * left to end. */
bool ib_loop_begin(struct ib_module *m, struct ib_loop *l, uint32_t inlined);
void ib_loop_end(struct ib_loop *l);
/* Takes n completions; false: there was an error, or not so many until that time (st_now_ns). */
bool ib_loop_take(struct ib_loop *l, int n, uint64_t until);

/* ---- port_trial.c: times of the operations, the least of some turns ---- */
/* Measures for once, when the first peer connects, unless parameters say costs or mca_base_tune is off. Takes below a
 * millisecond where a write of 64 KiB takes 50 us or less. */
void ib_port_calibrate(struct ib_module *m);
/* st_btl_ops.facts: with costs of this device and machine. Those of the module stay as all ranks have them. */
void ib_port_facts(const struct st_btl_endpoint *ep, struct st_btl_facts *facts);

#endif

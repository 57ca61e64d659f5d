/* One port of one device: its verbs objects, attributes and address, and the limits that follow from them. */
#ifndef IB_DEVICE_H
#define IB_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <strata/strata.h>
#include "params.h"

struct ib_limits;

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
    const struct ib_limits *limits; /* port_choice.h */
    enum ibv_mtu mtu;
    uint32_t place;    /* of this port among all that may be used: rails.h */
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
/* The path to a port with this address. */
struct ibv_ah_attr ib_device_path(const struct ib_device *d, const uint8_t gid[16], uint16_t lid);

/* ---- init_error.c ---- */
enum ib_resource { IB_PDS, IB_CQS, IB_SRQS, IB_QPS, IB_MRS };
/* Describes an object that cannot be made: errno's text and, for ENOMEM, the limit that was probably hit: the device's
 * number of such objects, or the memory that this process may lock. */
void ib_init_error(const struct ib_device *d, enum ib_resource resource, const char *what, char *why, size_t why_size);

#endif

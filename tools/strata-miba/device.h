/* The device under test: opened, with what its port says. */
#ifndef MIBA_DEVICE_H
#define MIBA_DEVICE_H

#include <infiniband/verbs.h>
#include "settings.h"

struct device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    uint8_t port_number;
    int gid_index;
    union ibv_gid gid;
    char name[64];
};

/* Opens what the settings name. On failure nothing is open. */
enum miba_status device_open(struct device *d, const struct settings *s, struct miba_why *why);
void device_close(struct device *d);
/* Bytes of the path's MTU: what was asked for, or the port's. */
unsigned device_mtu(const struct device *d, const struct settings *s);
enum ibv_mtu device_mtu_code(unsigned bytes);

#endif

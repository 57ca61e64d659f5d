/* The device under test: opened, with what its port says. */
#include "config.h"
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum miba_status open_named(struct device *d, const char *name, struct miba_why *why)
{
    int n = 0;
    char known[128] = "";
    struct ibv_device **list = ibv_get_device_list(&n), *found = NULL;

    for (int i = 0; list && i < n; i++) {
        const size_t at = strlen(known);
        snprintf(known + at, sizeof known - at, " %s", ibv_get_device_name(list[i]));
        if (!found && (!name || strcmp(name, ibv_get_device_name(list[i])) == 0))
            found = list[i];
    }
    if (found) {
        snprintf(d->name, sizeof d->name, "%s", ibv_get_device_name(found));
        errno = ENODEV;
        d->ctx = ibv_open_device(found);
    }
    const int error = errno;
    if (list)
        ibv_free_device_list(list);
    if (!found && n == 0)
        return miba_fail(why, MIBA_BROKEN, "there is no verbs device (softhca: LD_PRELOAD=libsofthca.so)");
    if (!found)
        return miba_fail(why, MIBA_BROKEN, "there is no device \"%s\"; there are:%s", name, known);
    if (!d->ctx)
        return miba_fail(why, MIBA_BROKEN, "device %s: cannot be opened: %s", d->name, strerror(error));
    return MIBA_OK;
}

/* Over Ethernet the last GID that is an IPv4 address is the one of RoCE v2 where a port has both kinds. */
static int choose_gid(struct device *d)
{
    int chosen = 0;

    if (d->port.link_layer != IBV_LINK_LAYER_ETHERNET)
        return 0;
    for (int i = 0; i < d->port.gid_tbl_len && i < 256; i++) {
        union ibv_gid gid;
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        if (ibv_query_gid(d->ctx, d->port_number, i, &gid) == 0 && memcmp(gid.raw, mapped, sizeof mapped) == 0)
            chosen = i;
    }
    return chosen;
}

static enum miba_status look_at_port(struct device *d, const struct settings *s, struct miba_why *why)
{
    int error = ibv_query_device(d->ctx, &d->attr);

    if (error)
        return miba_fail(why, MIBA_BROKEN, "device %s: ibv_query_device: %s", d->name, strerror(error));
    if (s->port > d->attr.phys_port_cnt)
        return miba_fail(why, MIBA_BROKEN, "device %s: there is no port %d; it has %d", d->name, s->port,
                         d->attr.phys_port_cnt);
    d->port_number = (uint8_t)s->port;
    error = ibv_query_port(d->ctx, d->port_number, &d->port);
    if (error)
        return miba_fail(why, MIBA_BROKEN, "device %s port %d: ibv_query_port: %s", d->name, s->port, strerror(error));
    if (d->port.state != IBV_PORT_ACTIVE)
        return miba_fail(why, MIBA_BROKEN, "device %s port %d: its state is %s, not active", d->name, s->port,
                         ibv_port_state_str(d->port.state));
    if (s->mtu && device_mtu_code((unsigned)s->mtu) > d->port.active_mtu)
        return miba_fail(why, MIBA_BROKEN, "device %s port %d: --mtu %d is more than the port's %d", d->name, s->port,
                         s->mtu, 128 << d->port.active_mtu);
    d->gid_index = s->gid_index >= 0 ? s->gid_index : choose_gid(d);
    if (ibv_query_gid(d->ctx, d->port_number, d->gid_index, &d->gid))
        return miba_fail(why, MIBA_BROKEN, "device %s port %d: there is no GID %d", d->name, s->port, d->gid_index);
    return MIBA_OK;
}

enum miba_status device_open(struct device *d, const struct settings *s, struct miba_why *why)
{
    *d = (struct device){0};
    enum miba_status status = open_named(d, s->device, why);
    if (status)
        return status;
    status = look_at_port(d, s, why);
    if (!status) {
        d->pd = ibv_alloc_pd(d->ctx);
        if (!d->pd)
            status = miba_fail(why, MIBA_BROKEN, "device %s: ibv_alloc_pd: %s", d->name, strerror(errno));
    }
    if (status)
        device_close(d);
    return status;
}

void device_close(struct device *d)
{
    if (d->pd)
        ibv_dealloc_pd(d->pd);
    if (d->ctx)
        ibv_close_device(d->ctx);
    d->pd = NULL;
    d->ctx = NULL;
}

unsigned device_mtu(const struct device *d, const struct settings *s)
{
    return s->mtu ? (unsigned)s->mtu : 128u << d->port.active_mtu;
}

enum ibv_mtu device_mtu_code(unsigned bytes)
{
    return bytes >= 4096   ? IBV_MTU_4096
           : bytes >= 2048 ? IBV_MTU_2048
           : bytes >= 1024 ? IBV_MTU_1024
           : bytes >= 512  ? IBV_MTU_512
                           : IBV_MTU_256;
}

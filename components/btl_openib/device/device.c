/* Verbs objects that all parts of a module share, and queries of the device. */
#include "device/device.h"

#include <endian.h>
#include <fcntl.h>
#include <string.h>

static int device_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? STRATA_OK : STRATA_ERR_SYSTEM;
}

int ib_device_open(struct ib_device *d, char *why, size_t why_size)
{
    int rc;

    d->pd = ibv_alloc_pd(d->verbs);
    d->channel = ibv_create_comp_channel(d->verbs);
    if (!d->pd || !d->channel) {
        ib_init_error(d, IB_PDS, "protection domain or completion channel", why, why_size);
        return STRATA_ERR_SYSTEM;
    }
    rc = device_nonblocking(d->channel->fd);
    return rc == STRATA_OK ? device_nonblocking(d->verbs->async_fd) : rc;
}

void ib_device_close(struct ib_device *d)
{
    if (d->channel)
        (void)ibv_destroy_comp_channel(d->channel);
    if (d->pd)
        (void)ibv_dealloc_pd(d->pd);
}

uint16_t ib_device_partition(const struct ib_device *d)
{
    __be16 key = 0;

    return ibv_query_pkey(d->verbs, d->port, (int)d->par->pkey_index, &key) == 0 ? be16toh(key) : 0;
}

uint8_t ib_device_reads(const struct ib_device *d)
{
    return (uint8_t)(d->attr.max_qp_rd_atom < 16 ? d->attr.max_qp_rd_atom : 16);
}

struct ibv_ah_attr ib_device_path(const struct ib_device *d, const uint8_t gid[16], uint16_t lid)
{
    struct ibv_ah_attr a = {.dlid = lid,
                            .sl = (uint8_t)d->par->service_level,
                            .is_global = d->global,
                            .port_num = d->port,
                            .grh = {.sgid_index = d->gid_index, .hop_limit = 64}};

    memcpy(a.grh.dgid.raw, gid, sizeof a.grh.dgid.raw);
    return a;
}

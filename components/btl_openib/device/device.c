/* Verbs objects that all parts of a module share, and queries of the device. */
#include "device/device.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

int ib_device_nonblocking(int fd)
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
    rc = ib_device_nonblocking(d->channel->fd);
    return rc == STRATA_OK ? ib_device_nonblocking(d->verbs->async_fd) : rc;
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

int ib_device_qp_init(const struct ib_device *d, struct ibv_qp *qp, unsigned access)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .pkey_index = (uint16_t)d->par->pkey_index,
                            .port_num = d->port,
                            .qp_access_flags = access};

    return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int ib_device_qp_connect(const struct ib_device *d, struct ibv_qp *qp, struct ibv_qp_attr *a)
{
    int rc;

    a->qp_state = IBV_QPS_RTR;
    rc = ibv_modify_qp(qp, a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc != 0)
        return rc;
    a->qp_state = IBV_QPS_RTS;
    a->timeout = (uint8_t)d->par->timeout;
    a->retry_cnt = (uint8_t)d->par->retry_count;
    a->rnr_retry = 7; /* for ever: credits bound it, and a receiver may be stopped for long */
    return ibv_modify_qp(qp, a,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

/* A device goes on with the pages that were registered; of a page that both processes have after a fork, whoever writes
 * first gets another one, which the device does not know. */
int ib_fork_prepare(bool wanted)
{
    /* Kernels since 5.12 copy registered pages for the child at the fork itself. */
    if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
        return 0;
    return wanted ? ibv_fork_init() : EOPNOTSUPP;
}

const char *ib_fork_why(int error)
{
    return error == EOPNOTSUPP ? "btl_openib_fork_support is off"
           : error == EINVAL   ? "somebody has registered memory before"
                               : strerror(error);
}

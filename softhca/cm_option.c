/* Options of identifiers (rdma_set_option), with the checks of Linux, drivers/infiniband/core/ucma.c. */
#include <errno.h>
#include <string.h>
#include "cm.h"

static int reuse_address(struct cm_id *id, const void *value)
{
    int on;
    memcpy(&on, value, sizeof on);
    if (on ? id->state == CM_LISTENING : id->state != CM_IDLE || id->fd >= 0)
        return EINVAL;
    id->reuse = on != 0;
    return 0;
}

static int one_family(struct cm_id *id, const void *value)
{
    int on;
    memcpy(&on, value, sizeof on);
    if (id->state != CM_IDLE)
        return EINVAL;
    id->afonly = on != 0;
    return 0;
}

/* Of a connection's queue pair, in its 5 bits. */
static int ack_timeout(struct cm_id *id, const void *value)
{
    const uint8_t timeout = *(const uint8_t *)value;
    if (id->datagram || timeout > 31)
        return EINVAL;
    id->ack_timeout = (int8_t)timeout;
    return 0;
}

/* Nothing here has a type of service. */
static int type_of_service(struct cm_id *id, const void *value)
{
    (void)id, (void)value;
    return 0;
}

static const struct {
    int (*set)(struct cm_id *id, const void *value);
    size_t size;
} options[] = {[RDMA_OPTION_ID_TOS] = {type_of_service, sizeof(uint8_t)},
               [RDMA_OPTION_ID_REUSEADDR] = {reuse_address, sizeof(int)},
               [RDMA_OPTION_ID_AFONLY] = {one_family, sizeof(int)},
               [RDMA_OPTION_ID_ACK_TIMEOUT] = {ack_timeout, sizeof(uint8_t)}};

int cm_set_option(struct cm_id *id, uint32_t level, uint32_t name, const void *value, size_t size)
{
    if (level != RDMA_OPTION_ID || name >= sizeof options / sizeof options[0])
        return ENOSYS;
    return size == options[name].size ? options[name].set(id, value) : EINVAL;
}

/* Queries of devices and ports. */
#include <endian.h>
#include <string.h>
#include "interpose.h"

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (hca_is_ours(context))
        return hca_query_device(context, attr);
    __typeof__(&ibv_query_device) real = REAL(ibv_query_device, V1_1);
    return real ? real(context, attr) : ENOSYS;
}

EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    if (hca_is_ours(context)) {
        struct ibv_port_attr all;
        const int error = hca_query_port(context, port, &all);
        /* Who comes here and not through the context was built before the last member was there. */
        if (!error)
            memcpy(attr, &all, offsetof(struct ibv_port_attr, port_cap_flags2));
        return error;
    }
    __typeof__(&ibv_query_port) real = REAL(ibv_query_port, V1_1);
    return real ? real(context, port, attr) : ENOSYS;
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (hca_is_ours(context))
        return hca_minus_one(hca_query_gid(context, port, index, gid));
    __typeof__(&ibv_query_gid) real = REAL(ibv_query_gid, V1_1);
    return real ? real(context, port, index, gid) : hca_minus_one(ENOSYS);
}

/* Fills an entry of a caller whose struct may be shorter or longer than ours. */
static void put_entry(void *at, const struct ibv_gid_entry *e, size_t size)
{
    memset(at, 0, size);
    memcpy(at, e, size < sizeof *e ? size : sizeof *e);
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                             uint32_t flags, size_t size)
{
    if (hca_is_ours(context)) {
        struct ibv_gid_entry e;
        const int error = flags ? EOPNOTSUPP : hca_gid_entry(hca_context(context)->device->index, port, index, &e);
        if (!error)
            put_entry(entry, &e, size);
        return error;
    }
    __typeof__(&_ibv_query_gid_ex) real = REAL(_ibv_query_gid_ex, V1_11);
    return real ? real(context, port, index, entry, flags, size) : ENOSYS;
}

static ssize_t our_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t room, size_t size)
{
    const uint32_t device = hca_context(context)->device->index;
    ssize_t n = 0;
    for (uint32_t port = 1; port <= hca.limits.ports; port++)
        for (uint32_t i = 0; i < HCA_GIDS; i++) {
            struct ibv_gid_entry e;
            const int error = hca_gid_entry(device, port, i, &e);
            if (error == ENODATA)
                continue;
            if (error)
                return -error;
            if ((size_t)n == room)
                return -EINVAL;
            put_entry((char *)entries + (size_t)n++ * size, &e, size);
        }
    return n;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
                                    uint32_t flags, size_t size)
{
    if (hca_is_ours(context))
        return flags ? -EOPNOTSUPP : our_gid_table(context, entries, max_entries, size);
    __typeof__(&_ibv_query_gid_table) real = REAL(_ibv_query_gid_table, V1_11);
    return real ? real(context, entries, max_entries, flags, size) : -ENOSYS;
}

/* Of no header, but programs call it. It has types of its own: 0: IB and RoCE version 1, 1: RoCE version 2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type);

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type)
{
    if (hca_is_ours(context)) {
        struct ibv_gid_entry e;
        const int error = hca_gid_entry(hca_context(context)->device->index, port, index, &e);
        if (!error)
            *type = e.gid_type == IBV_GID_TYPE_ROCE_V2;
        return hca_minus_one(error);
    }
    __typeof__(&ibv_query_gid_type) real = REAL(ibv_query_gid_type, V_PRIVATE);
    return real ? real(context, port, index, type) : hca_minus_one(ENOSYS);
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    if (hca_is_ours(context))
        return hca_minus_one(hca_query_pkey(context, port, index, pkey));
    __typeof__(&ibv_query_pkey) real = REAL(ibv_query_pkey, V1_1);
    return real ? real(context, port, index, pkey) : hca_minus_one(ENOSYS);
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    if (hca_is_ours(context)) {
        __be16 ours;
        int error = hca_query_pkey(context, port, 0, &ours), index = 0;
        while (error == 0 && ours != pkey)
            error = hca_query_pkey(context, port, ++index, &ours);
        return error ? hca_minus_one(error == EINVAL && index ? ENOENT : error) : index;
    }
    __typeof__(&ibv_get_pkey_index) real = REAL(ibv_get_pkey_index, V1_5);
    return real ? real(context, port, pkey) : hca_minus_one(ENOSYS);
}

EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                       uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    if (hca_is_ours(context)) {
        uint32_t device, port;
        if (!hca.limits.roce || !attr->is_global || !hca_gid_place(&attr->grh.dgid, &device, &port))
            return -EINVAL;
        const uint8_t mac[ETHERNET_LL_SIZE] = {0x02, 's', 'o', 'f', (uint8_t)device, (uint8_t)port};
        memcpy(eth_mac, mac, sizeof mac);
        *vid = 0xffff; /* no VLAN */
        return 0;
    }
    __typeof__(&ibv_resolve_eth_l2_from_gid) real = REAL(ibv_resolve_eth_l2_from_gid, V1_1);
    return real ? real(context, attr, eth_mac, vid) : -ENOSYS;
}

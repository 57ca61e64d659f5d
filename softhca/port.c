/* Ports and addresses: one subnet, on which every port of every device has a LID and a GID. All processes share the
 * devices, so an address says which device and port, and the number of a queue pair says which process. */
#include <errno.h>
#include <string.h>
#include "hca.h"

#define SUBNET_TIMEOUT 18
#define FIRST_LID      1u
#define PHYS_DISABLED  3
#define PHYS_LINK_UP   5
#define WIDTH_4X       2
#define SPEED_EDR      32 /* 25 Gb/s per lane */

static const unsigned char link_local[8] = {0xfe, 0x80};
static const unsigned char v4_mapped[12] = {[10] = 0xff, [11] = 0xff};
#define V4_FIRST  10u
#define V4_SECOND 42u

/* Which of its addresses each port has. In this process only: to the others it is another machine's. */
static _Atomic(uint32_t) address[HCA_DEVICES][HCA_PORTS];

static bool exists(uint32_t device, uint32_t port)
{
    return device < hca.limits.devices && port >= 1 && port <= hca.limits.ports;
}

static uint32_t address_now(uint32_t device, uint32_t port)
{
    return exists(device, port) ? atomic_load_explicit(&address[device][port - 1], memory_order_relaxed) : 0;
}

/* With RoCE the LIDs go no further than our own tables. */
static uint16_t lid_at(uint32_t device, uint32_t port, uint32_t n)
{
    return (uint16_t)(FIRST_LID + n * HCA_DEVICES * HCA_PORTS + device * HCA_PORTS + port - 1);
}

uint16_t hca_lid(uint32_t device, uint32_t port)
{
    return lid_at(device, port, address_now(device, port));
}

static bool lid_place(uint16_t lid, uint32_t *device, uint32_t *port)
{
    if (lid < FIRST_LID)
        return false;
    const uint32_t at = (lid - FIRST_LID) % (HCA_DEVICES * HCA_PORTS), d = at / HCA_PORTS, p = at % HCA_PORTS + 1;
    if (!exists(d, p))
        return false;
    *device = d;
    *port = p;
    return true;
}

void hca_set_address(uint32_t device, uint32_t port, uint32_t n)
{
    atomic_store(&address[device][port - 1], n);
    for (uint32_t i = 0; i < atomic_load(&hca.top_qp); i++) {
        struct hca_qp *qp = hca_qp_at(hca.segment, i);
        if (qp->device == device && qp->port == port)
            atomic_store(&qp->lid, lid_at(device, port, n));
    }
}

/* InfiniBand: the port's GUID is its device's plus the port. Ethernet: the same as link-local address, and an IPv4
 * address; the nth of each. */
static bool gid_at(uint32_t device, uint32_t port, uint32_t n, uint32_t index, union ibv_gid *gid)
{
    memset(gid, 0, sizeof *gid);
    if (index == 0) {
        struct hca_device *first;
        hca_devices(&first);
        const uint64_t guid = hca_guid(&first[device]);
        memcpy(gid->raw, link_local, sizeof link_local);
        memcpy(gid->raw + 8, &guid, sizeof guid);
        gid->raw[13] = (unsigned char)(hca.limits.roce ? n : 0);
        gid->raw[15] = (unsigned char)port;
        return true;
    }
    if (index == 1 && hca.limits.roce) {
        memcpy(gid->raw, v4_mapped, sizeof v4_mapped);
        gid->raw[12] = V4_FIRST;
        gid->raw[13] = (unsigned char)(V4_SECOND + n);
        gid->raw[14] = (unsigned char)device;
        gid->raw[15] = (unsigned char)port;
        return true;
    }
    return false;
}

void hca_gid(uint32_t device, uint32_t port, union ibv_gid *gid)
{
    (void)gid_at(device, port, address_now(device, port), 0, gid);
}

/* Whose it is, and which of its addresses. */
static bool gid_place(const union ibv_gid *gid, uint32_t *device, uint32_t *port, uint32_t *n)
{
    const uint32_t d = gid->raw[14], p = gid->raw[15];
    for (uint32_t i = 0; i < HCA_GIDS && exists(d, p); i++) {
        const uint32_t nth = i == 0 ? (hca.limits.roce ? gid->raw[13] : 0) : gid->raw[13] - V4_SECOND;
        union ibv_gid ours;
        if (nth < HCA_ADDRESSES && gid_at(d, p, nth, i, &ours) && memcmp(&ours, gid, sizeof ours) == 0) {
            *device = d;
            *port = p;
            *n = nth;
            return true;
        }
    }
    return false;
}

bool hca_gid_place(const union ibv_gid *gid, uint32_t *device, uint32_t *port)
{
    uint32_t n;
    return gid_place(gid, device, port, &n);
}

uint16_t hca_route(const struct ibv_ah_attr *a)
{
    uint32_t device, port, gid_device, gid_port, n;
    const bool global = a->is_global && gid_place(&a->grh.dgid, &gid_device, &gid_port, &n);
    /* Ethernet knows GIDs only. */
    if (hca.limits.roce)
        return global ? lid_at(gid_device, gid_port, n) : 0;
    if (!lid_place(a->dlid, &device, &port))
        return 0;
    /* The GID of a header that arrives must be one of the port's. */
    if (a->is_global && (!global || gid_device != device || gid_port != port))
        return 0;
    return a->dlid;
}

bool hca_port_up(const char *segment, uint32_t device, uint32_t port)
{
    const struct hca_header *h = (const struct hca_header *)(const void *)segment;
    return h && device < HCA_DEVICES && port >= 1 && port <= HCA_PORTS &&
           atomic_load_explicit(&h->port[device][port - 1].state, memory_order_relaxed) == IBV_PORT_ACTIVE &&
           !atomic_load_explicit(&h->device_gone[device], memory_order_relaxed);
}

int hca_query_port(struct ibv_context *c, uint8_t port, struct ibv_port_attr *a)
{
    const uint32_t device = hca_context(c)->device->index;
    if (!exists(device, port))
        return EINVAL;
    if (hca_device_gone(device))
        return EIO;
    const bool roce = hca.limits.roce, up = hca_port_up(hca.segment, device, port);
    *a = (struct ibv_port_attr){
        .state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = hca.limits.mtu,
        .gid_tbl_len = HCA_GIDS,
        .port_cap_flags = roce ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS
                               : IBV_PORT_CM_SUP | IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP,
        .max_msg_sz = 1u << 30,
        .pkey_tbl_len = (uint16_t)hca.limits.pkeys,
        .lid = roce ? 0 : hca_lid(device, port),
        .sm_lid = roce ? 0 : FIRST_LID,
        .max_vl_num = 1,
        .subnet_timeout = roce ? 0 : SUBNET_TIMEOUT,
        .active_width = WIDTH_4X,
        .active_speed = SPEED_EDR,
        .phys_state = up ? PHYS_LINK_UP : PHYS_DISABLED,
        .link_layer = roce ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND,
    };
    return 0;
}

int hca_gid_entry(uint32_t device, uint32_t port, uint32_t index, struct ibv_gid_entry *e)
{
    if (!exists(device, port) || index >= HCA_GIDS)
        return EINVAL;
    if (hca_device_gone(device))
        return EIO;
    memset(e, 0, sizeof *e);
    if (!gid_at(device, port, address_now(device, port), index, &e->gid))
        return ENODATA;
    e->gid_index = index;
    e->port_num = port;
    e->gid_type = hca.limits.roce ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
    return 0;
}

int hca_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry e;
    const int error = index < 0 ? EINVAL : hca_gid_entry(hca_context(c)->device->index, port, (uint32_t)index, &e);
    if (error && error != ENODATA)
        return error;
    *gid = e.gid; /* zero where the table is empty */
    return 0;
}

int hca_query_pkey(struct ibv_context *c, uint8_t port, int index, __be16 *pkey)
{
    const uint32_t device = hca_context(c)->device->index;
    if (!exists(device, port) || index < 0 || (uint32_t)index >= hca.limits.pkeys)
        return EINVAL;
    if (hca_device_gone(device))
        return EIO;
    *pkey = htobe16((uint16_t)(0xffff - index)); /* full members all */
    return 0;
}

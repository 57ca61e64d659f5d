/* IP addresses of the fabric's ports. With RoCE a port has the addresses that
 * its GIDs are. All other addresses of this machine are the first port's of the first device, as they would be of the
 * one adapter that IP runs over. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cm.h"

socklen_t cm_address_size(const union cm_address *a)
{
    switch (a->any.sa_family) {
    case AF_INET:
        return sizeof a->v4;
    case AF_INET6:
        return sizeof a->v6;
    default:
        return 0;
    }
}

static in_port_t *port_in(union cm_address *a)
{
    return a->any.sa_family == AF_INET ? &a->v4.sin_port : &a->v6.sin6_port;
}

uint16_t cm_port_of(const union cm_address *a)
{
    union cm_address copy = *a;
    return ntohs(*port_in(&copy));
}

bool cm_is_any(const union cm_address *a)
{
    return a->any.sa_family == AF_INET ? a->v4.sin_addr.s_addr == htonl(INADDR_ANY)
                                       : IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

bool cm_same_host(const union cm_address *a, const union cm_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    return a->any.sa_family == AF_INET ? a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr
                                       : IN6_ARE_ADDR_EQUAL(&a->v6.sin6_addr, &b->v6.sin6_addr);
}

/* The GID that this address is, where it is one; its index in a port's table. */
static uint32_t to_gid(const union cm_address *a, union ibv_gid *gid)
{
    if (a->any.sa_family == AF_INET6) {
        memcpy(gid->raw, &a->v6.sin6_addr, sizeof gid->raw);
        return 0;
    }
    memset(gid, 0, sizeof *gid);
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, &a->v4.sin_addr, 4);
    return 1;
}

/* Only an address of this machine can be bound to. */
static bool is_local(const union cm_address *a)
{
    union cm_address at = *a;
    const int fd = socket(a->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    *port_in(&at) = 0;
    const bool local = bind(fd, &at.any, cm_address_size(&at)) == 0;
    close(fd);
    return local;
}

int cm_place(struct cm_end *e, bool mine)
{
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    const uint32_t index = to_gid(&e->at, &gid);
    e->port = 0;
    if (hca.limits.roce && hca_gid_place(&gid, &e->device, &e->port)) {
        /* A port whose address has changed has no other. */
        if (mine && (hca_gid_entry(e->device, e->port, index, &entry) || memcmp(&entry.gid, &gid, sizeof gid) != 0)) {
            e->port = 0;
            return EADDRNOTAVAIL;
        }
        e->gid = gid;
    } else if (is_local(&e->at)) {
        e->device = 0;
        e->port = 1;
        if (hca_gid_entry(e->device, e->port, hca.limits.roce ? 1 : 0, &entry)) {
            e->port = 0;
            return ENODEV;
        }
        e->gid = entry.gid;
    } else {
        return mine ? EADDRNOTAVAIL : ENETUNREACH;
    }
    e->lid = hca_lid(e->device, e->port);
    return 0;
}

void cm_source_for(const union cm_address *to, union cm_address *from)
{
    struct ibv_gid_entry entry;
    union ibv_gid gid;
    uint32_t device, port;
    const uint32_t index = to_gid(to, &gid);
    *from = *to;
    *port_in(from) = 0;
    if (!hca.limits.roce || !hca_gid_place(&gid, &device, &port) || hca_gid_entry(0, 1, index, &entry))
        return;
    if (to->any.sa_family == AF_INET)
        memcpy(&from->v4.sin_addr, entry.gid.raw + 12, 4);
    else
        memcpy(&from->v6.sin6_addr, entry.gid.raw, sizeof entry.gid.raw);
}

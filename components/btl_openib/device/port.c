/* Choosing devices and ports, and the address by which peers reach this one. */
#include "device/device.h"
#include "wire.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool port_is_named(const char *item, size_t n, const char *device, unsigned port)
{
    const char *colon = memchr(item, ':', n);
    size_t n_device = colon ? (size_t)(colon - item) : n;

    return strlen(device) == n_device && strncmp(item, device, n_device) == 0 &&
           (!colon || strtoul(colon + 1, NULL, 10) == port);
}

/* Whether the parameter `devices` lets this port be used. */
static bool port_is_wanted(const char *list, const char *device, unsigned port)
{
    bool exclude = list[0] == '^', found = false;

    if (!*list)
        return true;
    for (const char *at = list + exclude; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        found |= port_is_named(at, n, device, port);
        at += n;
    }
    return found != exclude;
}

bool ib_port_named(const struct ib_device *d)
{
    const char *list = d->par->devices;

    return list[0] && list[0] != '^' && port_is_wanted(list, ibv_get_device_name(d->verbs->device), d->port);
}

/* Names in the list that are not on this machine: often a misspelling, but one list may serve several kinds of
 * machines. */
static void port_name_missing(const char *list, struct ibv_device **devices, int n, char *out, size_t size)
{
    size_t used = 0;

    for (const char *at = list[0] == '^' ? "" : list; *at && used < size; at += *at == ',') {
        size_t length = strcspn(at, ","), device = strcspn(at, ",:");
        bool here = false;
        for (int i = 0; i < n; i++)
            here |= port_is_named(at, device, ibv_get_device_name(devices[i]), 0);
        if (!here && length)
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)length, at);
        at += length;
    }
}

static bool port_gid_routable(const union ibv_gid *g)
{
    static const uint8_t none[16];

    return memcmp(g->raw, none, 16) != 0 && !(g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80);
}

/* The first entry of RoCE v2 that a router could carry; the first of all where there is none. */
static uint8_t port_choose_gid(struct ib_device *d)
{
    struct ibv_gid_entry e;

    if (d->par->gid_index >= 0)
        return (uint8_t)d->par->gid_index;
    for (uint32_t i = 0; d->ethernet && i < 256; i++) {
        if ((int)i >= d->port_attr.gid_tbl_len)
            break;
        if (ibv_query_gid_ex(d->verbs, d->port, i, &e, 0) == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            port_gid_routable(&e.gid))
            return (uint8_t)i;
    }
    return 0;
}

static enum ibv_mtu port_choose_mtu(const struct ib_device *d)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    if (d->par->mtu == 0)
        return d->port_attr.active_mtu;
    while (mtu < d->port_attr.active_mtu && (128 << (mtu + 1)) <= d->par->mtu)
        mtu = (enum ibv_mtu)(mtu + 1);
    return mtu;
}

/* Whether the port has what the parameters ask for; `why` says what it lacks. */
static bool port_settings_fit(const struct ib_device *d, char *why, size_t why_size)
{
    static const union ibv_gid none;
    const struct ib_params *par = d->par;
    __be16 key = 0;

    if (par->gid_index >= d->port_attr.gid_tbl_len)
        snprintf(why, why_size, "btl_openib_gid_index=%d: the GID table of %s has entries 0 to %d", (int)par->gid_index,
                 d->name, d->port_attr.gid_tbl_len - 1);
    else if (par->gid_index >= 0 && memcmp(&d->gid, &none, sizeof none) == 0)
        snprintf(why, why_size, "btl_openib_gid_index=%d: this entry of the GID table of %s is empty",
                 (int)par->gid_index, d->name);
    else if (par->pkey_index >= d->port_attr.pkey_tbl_len)
        snprintf(why, why_size, "btl_openib_pkey_index=%d: the partition key table of %s has entries 0 to %d",
                 (int)par->pkey_index, d->name, d->port_attr.pkey_tbl_len - 1);
    else if (ibv_query_pkey(d->verbs, d->port, (int)par->pkey_index, &key) == 0 && (key & htobe16(0x7fff)) == 0)
        snprintf(why, why_size, "btl_openib_pkey_index=%d: this entry of the partition key table of %s is empty",
                 (int)par->pkey_index, d->name);
    else
        return true;
    return false;
}

/* Opens the device for this port alone: each module has its own events. False: out of memory, the device refuses, or
 * `why`. */
static bool port_open(struct ib_device *d, const struct ib_params *par, struct ibv_device *device, uint8_t port,
                      const struct ibv_port_attr *attr, char *why, size_t why_size)
{
    *d = (struct ib_device){.par = par, .port = port, .port_attr = *attr, .verbs = ibv_open_device(device)};
    if (!d->verbs)
        return false;
    snprintf(d->name, sizeof d->name, "%s:%u", ibv_get_device_name(device), port);
    d->software = ib_is_software(device);
    d->ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
    d->cuts_packets = !d->software || d->ethernet;
    d->global = d->ethernet || (attr->flags & IBV_QPF_GRH_REQUIRED) != 0;
    d->gid_index = port_choose_gid(d);
    d->mtu = port_choose_mtu(d);
    (void)ibv_query_gid(d->verbs, port, d->gid_index, &d->gid);
    if (ibv_query_device(d->verbs, &d->attr) != 0 || !port_settings_fit(d, why, why_size)) {
        (void)ibv_close_device(d->verbs);
        return false;
    }
    d->limits = ib_limits(d->software, d->ethernet);
    d->max_reads = par->rdma_reads ? (uint8_t)par->rdma_reads : d->limits->rdma_reads;
    if (d->max_reads > d->attr.max_qp_init_rd_atom)
        d->max_reads = (uint8_t)d->attr.max_qp_init_rd_atom;
    d->max_rdma = ib_longest_rdma(par->rdma_request ? par->rdma_request : d->limits->rdma_request, attr->max_msg_sz);
    return true;
}

/* A port without a GID is being given one, and a GID that no router could carry comes for a moment while an interface
 * changes from one IP address to the next: both count as down. */
enum ib_port_state ib_port_refresh(struct ib_device *d)
{
    static const union ibv_gid none;
    struct ibv_port_attr a;
    union ibv_gid gid;
    uint8_t index;

    if (ibv_query_port(d->verbs, d->port, &a) != 0 || a.state != IBV_PORT_ACTIVE)
        return IB_PORT_DOWN;
    if (a.lid == d->port_attr.lid && ibv_query_gid(d->verbs, d->port, d->gid_index, &gid) == 0 &&
        memcmp(&gid, &d->gid, sizeof gid) == 0)
        return IB_PORT_SAME;
    index = port_choose_gid(d);
    if (ibv_query_gid(d->verbs, d->port, index, &gid) != 0 || memcmp(&gid, &none, sizeof gid) == 0 ||
        (index != d->gid_index && port_gid_routable(&d->gid) && !port_gid_routable(&gid)))
        return IB_PORT_DOWN;
    d->port_attr = a;
    d->gid_index = index;
    d->gid = gid;
    return IB_PORT_MOVED;
}

struct search {
    const struct ib_params *par;
    struct ib_device *found;
    size_t n;
    int n_ports, n_unwanted; /* seen without use */
    uint32_t n_wanted;       /* the place of the next one: ib_rail_match */
    char seen[256];          /* what there is, for messages */
    char lost[256];          /* what is to be used and cannot be opened */
    char *why;               /* why a port cannot be used as the parameters say */
    size_t why_size;
};

static void search_note(char *text, size_t size, const char *device, unsigned port, const char *what)
{
    size_t at = strlen(text);

    if (port)
        snprintf(text + at, size - at, "%s%s:%u%s", at ? ", " : "", device, port, what);
    else
        snprintf(text + at, size - at, "%s%s%s", at ? ", " : "", device, what);
}

/* One that is to be used and is active. */
static void search_use_port(struct search *s, struct ibv_device *d, unsigned port, const struct ibv_port_attr *attr)
{
    char what[64];

    if (s->n == IB_MAX_RAILS || s->n_wanted >= IB_PLACES)
        return;
    if (port_open(&s->found[s->n], s->par, d, (uint8_t)port, attr, s->why, s->why_size)) {
        s->found[s->n++].place = s->n_wanted;
        return;
    }
    snprintf(what, sizeof what, " cannot be opened (%s)", strerror(errno));
    search_note(s->lost, sizeof s->lost, ibv_get_device_name(d), port, what);
}

static void search_device(struct search *s, struct ibv_device *d)
{
    struct ibv_context *c = ibv_open_device(d);
    struct ibv_device_attr attr;
    char what[64];

    if (!c) {
        snprintf(what, sizeof what, " cannot be opened (%s)", strerror(errno));
        search_note(s->seen, sizeof s->seen, ibv_get_device_name(d), 0, what);
        if (port_is_wanted(s->par->devices, ibv_get_device_name(d), 1)) { /* how many ports it has cannot be known */
            search_note(s->lost, sizeof s->lost, ibv_get_device_name(d), 0, what);
            s->n_wanted++;
        }
        return;
    }
    for (unsigned port = 1; ibv_query_device(c, &attr) == 0 && port <= attr.phys_port_cnt; port++) {
        struct ibv_port_attr p;
        if (ibv_query_port(c, (uint8_t)port, &p) != 0)
            continue;
        s->n_ports++;
        snprintf(what, sizeof what, " is %s", ibv_port_state_str(p.state));
        search_note(s->seen, sizeof s->seen, ibv_get_device_name(d), port, what);
        if (!port_is_wanted(s->par->devices, ibv_get_device_name(d), port)) {
            s->n_unwanted++;
            continue;
        }
        if (p.state == IBV_PORT_ACTIVE)
            search_use_port(s, d, port, &p);
        s->n_wanted++;
    }
    (void)ibv_close_device(c);
}

int ib_ports_open(const struct ib_params *par, struct ib_device found[], size_t *n, char *why, size_t why_size)
{
    struct search s = {.par = par, .found = found, .why = why, .why_size = why_size};
    struct ibv_device **list;
    char missing[128] = "";
    int n_devices = 0;

    if (par->mtu && (par->mtu < 256 || (par->mtu & (par->mtu - 1)) != 0))
        snprintf(why, why_size, "btl_openib_mtu=%d: the MTU is 256, 512, 1024, 2048 or 4096 bytes, or 0",
                 (int)par->mtu);
    if (par->devices[0] && strchr(par->devices + 1, '^'))
        snprintf(why, why_size,
                 "btl_openib_devices=%s: a list either names devices or excludes them, by one ^ at the very beginning",
                 par->devices);
    list = ibv_get_device_list(&n_devices);

    for (int i = 0; list && i < n_devices; i++)
        search_device(&s, list[i]);
    if (list) {
        port_name_missing(par->devices, list, n_devices, missing, sizeof missing);
        ibv_free_device_list(list);
    }
    *n = s.n;
    if (why[0]) /* settings that do not fit a port that is to be used: an error, whatever other ports there are */
        return STRATA_ERR_PARAM;
    if (s.lost[0] && par->devices[0] && par->devices[0] != '^') { /* asked for by name */
        snprintf(why, why_size, "btl_openib_devices=%s: %s", par->devices, s.lost);
        return STRATA_ERR_SYSTEM;
    }
    if (s.n == 0 && n_devices == 0)
        snprintf(why, why_size, "%s", IB_NO_DEVICE);
    else if (s.n == 0 && s.n_unwanted == s.n_ports && s.n_ports)
        snprintf(why, why_size, "btl_openib_devices=%s leaves none of the ports here: %s", par->devices, s.seen);
    else if (s.n == 0)
        snprintf(why, why_size, "no port that may be used is active and can be opened: %s (ibv_devinfo says more)",
                 s.lost[0] ? s.lost : s.seen);
    else if (missing[0])
        snprintf(why, why_size, "btl_openib_devices=%s names what is not on this machine: %s; there are: %s",
                 par->devices, missing, s.seen);
    else if (s.lost[0])
        snprintf(why, why_size, "%s: left out", s.lost);
    return STRATA_OK;
}

/* Choosing devices and ports, and the address by which peers reach this one. */
#include "openib.h"
#include "rails.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool named(const char *item, size_t n, const char *device, unsigned port)
{
    const char *colon = memchr(item, ':', n);
    size_t n_device = colon ? (size_t)(colon - item) : n;

    return strlen(device) == n_device && strncmp(item, device, n_device) == 0 &&
           (!colon || strtoul(colon + 1, NULL, 10) == port);
}

/* Whether the parameter `devices` lets this port be used. */
static bool wanted(const char *list, const char *device, unsigned port)
{
    bool exclude = list[0] == '^', found = false;

    if (!*list)
        return true;
    for (const char *at = list + exclude; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        found |= named(at, n, device, port);
        at += n;
    }
    return found != exclude;
}

bool ib_port_named(const struct ib_module *m)
{
    const char *list = m->par->devices;

    return list[0] && list[0] != '^' && wanted(list, ibv_get_device_name(m->device->device), m->port);
}

/* What a list names and is not here: often a misspelling, but one list may serve several kinds of machines. */
static void name_missing(const char *list, struct ibv_device **devices, int n, char *out, size_t size)
{
    size_t used = 0;

    for (const char *at = list[0] == '^' ? "" : list; *at && used < size; at += *at == ',') {
        size_t length = strcspn(at, ","), device = strcspn(at, ",:");
        bool here = false;
        for (int i = 0; i < n; i++)
            here |= named(at, device, ibv_get_device_name(devices[i]), 0);
        if (!here && length)
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? ", " : "", (int)length, at);
        at += length;
    }
}

static bool routable(const union ibv_gid *g)
{
    static const uint8_t none[16];

    return memcmp(g->raw, none, 16) != 0 && !(g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80);
}

/* The first entry of RoCE v2 that a router could carry; the first of all where there is none. */
static uint8_t choose_gid(struct ib_module *m)
{
    struct ibv_gid_entry e;

    if (m->par->gid_index >= 0)
        return (uint8_t)m->par->gid_index;
    for (uint32_t i = 0; m->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET && i < 256; i++) {
        if ((int)i >= m->port_attr.gid_tbl_len)
            break;
        if (ibv_query_gid_ex(m->device, m->port, i, &e, 0) == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            routable(&e.gid))
            return (uint8_t)i;
    }
    return 0;
}

static enum ibv_mtu choose_mtu(const struct ib_module *m)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    if (m->par->mtu == 0)
        return m->port_attr.active_mtu;
    while (mtu < m->port_attr.active_mtu && (128 << (mtu + 1)) <= m->par->mtu)
        mtu = (enum ibv_mtu)(mtu + 1);
    return mtu;
}

/* Numbers of lanes and speeds as libibverbs has them, of each speed what is data: 8/10 of the bits up to QDR, 64/66
 * from FDR10 on. */
uint32_t ib_bandwidth(const struct ibv_port_attr *a)
{
    static const struct {
        uint8_t code;
        uint32_t mbs;
    } lane[] = {{1, 250}, {2, 500}, {4, 1000}, {8, 1250}, {16, 1700}, {32, 3125}, {64, 6250}, {128, 12500}};
    static const struct {
        uint8_t code;
        uint32_t lanes;
    } width[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
    uint32_t mbs = 0, lanes = 0;

    for (size_t i = 0; i < sizeof lane / sizeof *lane; i++)
        mbs = lane[i].code == a->active_speed ? lane[i].mbs : mbs;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        lanes = width[i].code == a->active_width ? width[i].lanes : lanes;
    return mbs && lanes ? mbs * lanes : 1000;
}

uint32_t ib_longest_rdma(size_t wanted, bool ethernet, uint32_t most)
{
    size_t longest = wanted ? wanted : ethernet ? IB_RDMA_ON_ETHERNET : most ? most : 1u << 30;

    if (longest < IB_RDMA_LEAST)
        longest = IB_RDMA_LEAST;
    return (uint32_t)(most && longest > most ? most : longest);
}

size_t ib_split_min(size_t wanted, bool software, bool ethernet)
{
    if (wanted)
        return wanted;
    if (!software)
        return 0;
    return ethernet ? IB_SPLIT_ON_ETHERNET : IB_SPLIT_ON_INFINIBAND;
}

size_t ib_stream_limit(size_t wanted, bool software, bool ethernet)
{
    if (wanted)
        return wanted;
    return software && !ethernet ? 2 * IB_STREAM_LIMIT : IB_STREAM_LIMIT;
}

uint32_t ib_max_inline(size_t wanted, bool software, bool ethernet)
{
    if (wanted)
        return (uint32_t)wanted;
    return software && !ethernet ? 3 * IB_MAX_INLINE : IB_MAX_INLINE;
}

bool ib_is_software(const struct ibv_device *d)
{
    char path[sizeof d->ibdev_path + sizeof "/device"];

    snprintf(path, sizeof path, "%s/device", d->ibdev_path);
    return access(path, F_OK) != 0;
}

/* Whether what the parameters say can be had on this port; `why` says what not. */
static bool settings_fit(const struct ib_module *m, char *why, size_t why_size)
{
    static const union ibv_gid none;
    const struct ib_params *par = m->par;
    __be16 key = 0;

    if (par->gid_index >= m->port_attr.gid_tbl_len)
        snprintf(why, why_size, "btl_openib_gid_index=%d: the GID table of %s has entries 0 to %d", (int)par->gid_index,
                 m->name, m->port_attr.gid_tbl_len - 1);
    else if (par->gid_index >= 0 && memcmp(&m->gid, &none, sizeof none) == 0)
        snprintf(why, why_size, "btl_openib_gid_index=%d: this entry of the GID table of %s is empty",
                 (int)par->gid_index, m->name);
    else if (par->pkey_index >= m->port_attr.pkey_tbl_len)
        snprintf(why, why_size, "btl_openib_pkey_index=%d: the partition key table of %s has entries 0 to %d",
                 (int)par->pkey_index, m->name, m->port_attr.pkey_tbl_len - 1);
    else if (ibv_query_pkey(m->device, m->port, (int)par->pkey_index, &key) == 0 && (key & htobe16(0x7fff)) == 0)
        snprintf(why, why_size, "btl_openib_pkey_index=%d: this entry of the partition key table of %s is empty",
                 (int)par->pkey_index, m->name);
    else
        return true;
    return false;
}

/* Opens the device for this port alone: each module has its own events. NULL: out of memory, or the device refuses. */
static struct ib_module *open_port(const struct ib_params *par, struct ibv_device *d, uint8_t port,
                                   const struct ibv_port_attr *attr, char *why, size_t why_size)
{
    struct ib_module *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->par = par;
    m->port = port;
    m->port_attr = *attr;
    m->device = ibv_open_device(d);
    if (!m->device) {
        free(m);
        return NULL;
    }
    snprintf(m->name, sizeof m->name, "%s:%u", ibv_get_device_name(d), port);
    m->global = attr->link_layer == IBV_LINK_LAYER_ETHERNET || (attr->flags & IBV_QPF_GRH_REQUIRED) != 0;
    m->gid_index = choose_gid(m);
    m->mtu = choose_mtu(m);
    (void)ibv_query_gid(m->device, port, m->gid_index, &m->gid);
    if (ibv_query_device(m->device, &m->attr) != 0 || !settings_fit(m, why, why_size)) {
        ib_port_close(m);
        return NULL;
    }
    m->max_reads = par->rdma_reads                               ? (uint8_t)par->rdma_reads
                   : attr->link_layer == IBV_LINK_LAYER_ETHERNET ? IB_READS_ON_ETHERNET
                                                                 : IB_MOST_READS;
    if (m->max_reads > m->attr.max_qp_init_rd_atom)
        m->max_reads = (uint8_t)m->attr.max_qp_init_rd_atom;
    m->max_rdma = ib_longest_rdma(par->rdma_request, attr->link_layer == IBV_LINK_LAYER_ETHERNET, attr->max_msg_sz);
    return m;
}

void ib_port_close(struct ib_module *m)
{
    if (m->device)
        (void)ibv_close_device(m->device);
    free(m);
}

/* A port without a GID is waited for: it is being given one; and so is one that no router could carry where there was
 * one, while an interface changes from one IP address to the next. */
bool ib_port_refresh(struct ib_module *m)
{
    static const union ibv_gid none;
    struct ibv_port_attr a;
    union ibv_gid gid;
    uint8_t index;

    if (ibv_query_port(m->device, m->port, &a) != 0 || a.state != IBV_PORT_ACTIVE)
        return false;
    if (a.lid == m->port_attr.lid && ibv_query_gid(m->device, m->port, m->gid_index, &gid) == 0 &&
        memcmp(&gid, &m->gid, sizeof gid) == 0)
        return true;
    index = choose_gid(m);
    if (ibv_query_gid(m->device, m->port, index, &gid) != 0 || memcmp(&gid, &none, sizeof gid) == 0 ||
        (index != m->gid_index && routable(&m->gid) && !routable(&gid)))
        return false;
    m->port_attr = a;
    m->gid_index = index;
    m->gid = gid;
    ib_address_changed(m);
    return true;
}

struct search {
    const struct ib_params *par;
    struct ib_module **found;
    size_t n;
    int n_ports, n_unwanted; /* seen without use */
    uint32_t n_wanted;       /* the place of the next one: rails.h */
    char seen[256];          /* what there is, for messages */
    char lost[256];          /* what is to be used and cannot be opened */
    char *why;               /* why a port cannot be used as the parameters say */
    size_t why_size;
};

static void note(char *text, size_t size, const char *device, unsigned port, const char *what)
{
    size_t at = strlen(text);

    if (port)
        snprintf(text + at, size - at, "%s%s:%u%s", at ? ", " : "", device, port, what);
    else
        snprintf(text + at, size - at, "%s%s%s", at ? ", " : "", device, what);
}

/* One that is to be used and is active. */
static void use_port(struct search *s, struct ibv_device *d, unsigned port, const struct ibv_port_attr *attr)
{
    struct ib_module *m;
    char what[64];

    if (s->n == IB_MAX_RAILS || s->n_wanted >= IB_PLACES)
        return;
    m = open_port(s->par, d, (uint8_t)port, attr, s->why, s->why_size);
    if (m) {
        m->place = s->n_wanted;
        s->found[s->n++] = m;
        return;
    }
    snprintf(what, sizeof what, " cannot be opened (%s)", strerror(errno));
    note(s->lost, sizeof s->lost, ibv_get_device_name(d), port, what);
}

static void look_at(struct search *s, struct ibv_device *d)
{
    struct ibv_context *c = ibv_open_device(d);
    struct ibv_device_attr attr;
    char what[64];

    if (!c) {
        snprintf(what, sizeof what, " cannot be opened (%s)", strerror(errno));
        note(s->seen, sizeof s->seen, ibv_get_device_name(d), 0, what);
        if (wanted(s->par->devices, ibv_get_device_name(d), 1)) { /* how many ports it has cannot be known */
            note(s->lost, sizeof s->lost, ibv_get_device_name(d), 0, what);
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
        note(s->seen, sizeof s->seen, ibv_get_device_name(d), port, what);
        if (!wanted(s->par->devices, ibv_get_device_name(d), port)) {
            s->n_unwanted++;
            continue;
        }
        if (p.state == IBV_PORT_ACTIVE)
            use_port(s, d, port, &p);
        s->n_wanted++;
    }
    (void)ibv_close_device(c);
}

int ib_ports_open(const struct ib_params *par, struct ib_module ***out, size_t *n, char *why, size_t why_size)
{
    struct search s = {.par = par, .found = calloc(IB_MAX_RAILS, sizeof *s.found), .why = why, .why_size = why_size};
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
    list = s.found ? ibv_get_device_list(&n_devices) : NULL;

    for (int i = 0; list && i < n_devices; i++)
        look_at(&s, list[i]);
    if (list) {
        name_missing(par->devices, list, n_devices, missing, sizeof missing);
        ibv_free_device_list(list);
    }
    *out = s.found;
    *n = s.n;
    if (!s.found)
        return STRATA_ERR_NOMEM;
    if (why[0]) /* settings that do not fit a port that is to be used: an error, whatever other ports there are */
        return STRATA_ERR_PARAM;
    if (s.lost[0] && par->devices[0] && par->devices[0] != '^') { /* asked for by name */
        snprintf(why, why_size, "btl_openib_devices=%s: %s", par->devices, s.lost);
        return STRATA_ERR_SYSTEM;
    }
    if (s.n == 0 && n_devices == 0)
        snprintf(why, why_size, "there is no InfiniBand or RoCE device on this machine (ibv_devices lists none)");
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

/* Interfaces that the user wants, addresses that are published, and the order of dialling. */
#define _GNU_SOURCE 1
#include "address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata/sdk/socket.h>
#include <string.h>

#define LAST   9u /* cost of an address that is dialled only if it is the peer's only one */
#define MAPPED 96 /* bits in front of a mapped IPv4 address */

struct filter_item {
    char name[IFNAMSIZ]; /* "": a network */
    uint8_t ip[16];
    uint32_t prefix; /* bits */
};
struct tcp_filter {
    uint32_t n;
    struct filter_item item[];
};

static const uint8_t address_mapped[12] = {[10] = 0xff, 0xff};

/* ---- filters ---- */

static bool address_parse(const char *text, uint8_t ip[16], uint32_t *bits)
{
    memcpy(ip, address_mapped, sizeof address_mapped);
    *bits = 32;
    if (inet_pton(AF_INET, text, ip + 12) == 1)
        return true;
    *bits = 128;
    return inet_pton(AF_INET6, text, ip) == 1;
}

static bool filter_item_parse(char *text, struct filter_item *out)
{
    char *slash = strchr(text, '/'), *end;
    unsigned long prefix;
    uint32_t bits;

    if (slash)
        *slash = '\0';
    if (address_parse(text, out->ip, &bits)) {
        prefix = slash ? strtoul(slash + 1, &end, 10) : bits;
        if (slash && (slash[1] < '0' || slash[1] > '9' || *end || prefix > bits)) {
            *slash = '/';
            return false;
        }
        out->prefix = (uint32_t)prefix + 128 - bits;
        return true;
    }
    if (slash)
        *slash = '/';
    if (slash || !*text || strlen(text) >= sizeof out->name)
        return false;
    memcpy(out->name, text, strlen(text) + 1);
    return true;
}

int tcp_filter_parse(const char *list, struct tcp_filter **out, char *why, size_t why_size)
{
    char *copy, *rest, *item;
    size_t most = 1;
    struct tcp_filter *f;

    *out = NULL;
    if (!list || !*list)
        return STRATA_OK;
    for (const char *p = list; *p; p++)
        most += *p == ',';
    f = calloc(1, sizeof *f + most * sizeof f->item[0]);
    copy = rest = strdup(list);
    if (!f || !copy) {
        free(f);
        free(copy);
        return STRATA_ERR_NOMEM;
    }
    while ((item = strsep(&rest, ",")) != NULL) {
        item += strspn(item, " ");
        item[strcspn(item, " ")] = '\0';
        if (!filter_item_parse(item, &f->item[f->n++])) {
            snprintf(why, why_size, "\"%s\" is no name of an interface and no network like 10.1.0.0/16 or fd00::/8",
                     item);
            free(f);
            free(copy);
            return STRATA_ERR_PARAM;
        }
    }
    free(copy);
    *out = f;
    return STRATA_OK;
}

void tcp_filter_free(struct tcp_filter *f)
{
    free(f);
}

static bool address_within(const uint8_t a[16], const uint8_t b[16], uint32_t prefix)
{
    uint32_t bytes = prefix / 8, bits = prefix % 8;

    return memcmp(a, b, bytes) == 0 && (bits == 0 || (a[bytes] ^ b[bytes]) >> (8 - bits) == 0);
}

/* Length of the interface's name in an address's name, which may have a label behind a colon (eth0:1). */
static size_t address_name_length(const char *name)
{
    return strcspn(name, ":");
}

static bool address_same_interface(const char *a, const char *b)
{
    size_t n = address_name_length(a);

    return n == address_name_length(b) && strncmp(a, b, n) == 0;
}

bool tcp_filter_has(const struct tcp_filter *f, const char *name, const uint8_t ip[16])
{
    for (uint32_t i = 0; f && i < f->n; i++) {
        const struct filter_item *item = &f->item[i];
        bool label = strchr(item->name, ':') != NULL; /* only the addresses that have it */
        if (!item->name[0] ? address_within(item->ip, ip, item->prefix)
            : label        ? strcmp(item->name, name) == 0
                           : address_same_interface(item->name, name))
            return true;
    }
    return false;
}

/* ---- what is published ---- */

static uint8_t address_prefix(const struct ifaddrs *i)
{
    const uint8_t *mask;
    uint32_t n, bits = 0;

    if (!i->ifa_netmask)
        return 128;
    if (i->ifa_addr->sa_family == AF_INET) {
        mask = (const uint8_t *)&((const struct sockaddr_in *)(const void *)i->ifa_netmask)->sin_addr;
        n = 4;
    } else {
        mask = (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)i->ifa_netmask)->sin6_addr;
        n = 16;
    }
    while (bits < 8 * n && mask[bits / 8] >> (7 - bits % 8) & 1)
        bits++;
    return (uint8_t)(bits + (n == 4 ? MAPPED : 0));
}

/* Bridges that software for containers and virtual machines makes: they are up, and lead to no other machine. */
static bool address_virtual(const char *name)
{
    static const char *const prefixes[] = {"docker", "virbr",  "br-",     "veth", "vnet",  "lxc",    "lxd",
                                           "cni",    "podman", "flannel", "cali", "vmnet", "vboxnet"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool address_loopback(const struct ifaddrs *i, uint8_t ip[16])
{
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) || !(i->ifa_flags & IFF_LOOPBACK))
        return false;
    if (i->ifa_addr->sa_family == AF_INET) {
        memcpy(ip, address_mapped, sizeof address_mapped);
        memcpy(ip + 12, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, 4);
        return true;
    }
    if (i->ifa_addr->sa_family == AF_INET6) {
        memcpy(ip, &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr, 16);
        return true;
    }
    return false;
}

static bool address_take(const struct ifaddrs *i, const struct tcp_filter *include, const struct tcp_filter *exclude,
                         bool loopback, struct tcp_address *out)
{
    uint8_t ip[16];

    if (loopback ? !address_loopback(i, ip) : !st_socket_interface(i, ip))
        return false;
    if ((include && !tcp_filter_has(include, i->ifa_name, ip)) || tcp_filter_has(exclude, i->ifa_name, ip))
        return false;
    memset(out, 0, sizeof *out);
    memcpy(out->ip, ip, 16);
    out->prefix = address_prefix(i);
    out->flags = loopback ? TCP_LOOPBACK : address_virtual(i->ifa_name) ? TCP_VIRTUAL : 0;
    return true;
}

static bool address_is_v4(const uint8_t ip[16])
{
    return memcmp(ip, address_mapped, sizeof address_mapped) == 0;
}

/* As the kernel's driver says it; 0: it does not. */
static uint8_t address_speed(const char *name)
{
    char path[64 + IFNAMSIZ];
    long long mbits = 0;
    FILE *f;

    snprintf(path, sizeof path, "/sys/class/net/%.*s/speed", (int)address_name_length(name), name);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fscanf(f, "%lld", &mbits) != 1)
        mbits = 0;
    (void)fclose(f);
    return tcp_speed_code(mbits > 0 ? (uint64_t)mbits : 0);
}

/* Numbers the interfaces of `all` that have one of the addresses, and says how fast they are. */
static void address_number(const struct ifaddrs *all, struct tcp_address *a, uint32_t n)
{
    const char *names[TCP_ADDRESSES];
    uint32_t n_names = 0;

    for (uint32_t k = 0; k < n; k++) {
        uint8_t ip[16];
        const struct ifaddrs *i = all;
        uint32_t at = 0;
        while (i && !((st_socket_interface(i, ip) || address_loopback(i, ip)) && memcmp(ip, a[k].ip, 16) == 0))
            i = i->ifa_next;
        while (i && at < n_names && !address_same_interface(names[at], i->ifa_name))
            at++;
        if (i && at == n_names)
            names[n_names++] = i->ifa_name;
        a[k].interface = (uint8_t)at;
        a[k].speed = i && !(a[k].flags & TCP_LOOPBACK) ? address_speed(i->ifa_name) : 0;
    }
}

static uint32_t address_list(const struct ifaddrs *all, const struct tcp_filter *include,
                             const struct tcp_filter *exclude, struct tcp_address out[TCP_ADDRESSES],
                             uint32_t *left_out)
{
    struct tcp_address a;
    uint32_t n = 0;

    *left_out = 0;

    /* IPv4 first: it works in more places. */
    for (uint32_t kind = 0; kind < 4; kind++) {
        bool bridge = kind >= 2, v4 = kind % 2 == 0;
        for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
            if (!address_take(i, include, exclude, false, &a) ||
                (a.flags & TCP_VIRTUAL) != (bridge ? TCP_VIRTUAL : 0u) || address_is_v4(a.ip) != v4)
                continue;
            if (n < TCP_ADDRESSES)
                out[n++] = a;
            else
                ++*left_out;
        }
    }
    for (const struct ifaddrs *i = all; i && n < TCP_ADDRESSES; i = i->ifa_next)
        if (address_take(i, include, exclude, true, &out[n]))
            return n + 1; /* one is enough */
    return n;
}

uint32_t tcp_addresses(const struct ifaddrs *all, const struct tcp_filter *include, const struct tcp_filter *exclude,
                       struct tcp_address out[TCP_ADDRESSES], uint32_t *left_out)
{
    uint32_t n = address_list(all, include, exclude, out, left_out);

    address_number(all, out, n);
    return n;
}

/* ---- dialling ---- */

static uint32_t order_cost(const struct tcp_address *a, const struct tcp_address *ours, uint32_t n_ours, bool local)
{
    bool direct = false;

    if (a->flags & TCP_LOOPBACK)
        return local ? 0 : LAST;
    for (uint32_t i = 0; i < n_ours; i++)
        direct = direct || (a->prefix > 0 && a->prefix == ours[i].prefix && !(ours[i].flags & TCP_LOOPBACK) &&
                            address_within(a->ip, ours[i].ip, a->prefix));
    return 1 + (a->flags & TCP_VIRTUAL ? 4u : 0u) + (direct ? 0u : 2u) + (address_is_v4(a->ip) ? 0u : 1u);
}

uint32_t tcp_order(const struct tcp_address *theirs, uint32_t n, const struct tcp_address *ours, uint32_t n_ours,
                   bool local, uint8_t order[TCP_ADDRESSES])
{
    uint32_t cost[TCP_ADDRESSES];

    for (uint32_t i = 0; i < n; i++) {
        uint32_t mine = order_cost(&theirs[i], ours, n_ours, local), at = i;
        for (; at > 0 && cost[at - 1] > mine; at--) {
            cost[at] = cost[at - 1];
            order[at] = order[at - 1];
        }
        cost[at] = mine;
        order[at] = (uint8_t)i;
    }
    while (n > 1 && cost[n - 1] == LAST && cost[0] != LAST)
        n--;
    return n;
}

const char *tcp_address_text(const uint8_t ip[16], char text[TCP_TEXT])
{
    bool v4 = address_is_v4(ip);

    return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip + 12 : ip, text, TCP_TEXT) ? text : "?";
}

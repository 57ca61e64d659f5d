/* Links of a pair: networks that both have by an interface of their own. Both ends find the same ones in the same order
 * without a word, since they compute it from the same two cards: the module of a link at one end speaks to that of the
 * same link at the other. */
#include <string.h>
#include "address.h"

/* The first address of the network. */
static void link_network(const struct tcp_address *a, uint8_t net[16])
{
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t bits = a->prefix > 8 * i ? a->prefix - 8u * i : 0;
        net[i] = bits >= 8 ? a->ip[i] : (uint8_t)(a->ip[i] & ~(0xffu >> bits));
    }
}

static bool link_usable(const struct tcp_address *a)
{
    return a->prefix > 0 && a->prefix < 128 && !(a->flags & (TCP_LOOPBACK | TCP_VIRTUAL));
}

struct link {
    uint8_t net[16];
    uint8_t theirs, our_interface, their_interface;
    uint8_t prefix;
    uint8_t speed;
};

/* Of two ends; codes are in the order of what they say. */
static uint8_t link_slower(uint8_t a, uint8_t b)
{
    return !a || (b && b < a) ? b : a;
}

static bool link_before(const struct link *a, const struct link *b)
{
    int order = memcmp(a->net, b->net, 16);

    return order ? order < 0 : a->prefix < b->prefix;
}

/* All networks that both have, in order. */
static uint32_t link_candidates(const struct tcp_address *ours, uint32_t n_ours, const struct tcp_address *theirs,
                                uint32_t n_theirs, struct link all[TCP_ADDRESSES * TCP_ADDRESSES])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_ours; i++) {
        for (uint32_t k = 0; k < n_theirs; k++) {
            struct link l = {.theirs = (uint8_t)k,
                             .our_interface = ours[i].interface,
                             .their_interface = theirs[k].interface,
                             .prefix = ours[i].prefix,
                             .speed = link_slower(ours[i].speed, theirs[k].speed)};
            uint8_t net[16];
            uint32_t at;
            if (!link_usable(&ours[i]) || !link_usable(&theirs[k]) || ours[i].prefix != theirs[k].prefix)
                continue;
            link_network(&ours[i], l.net);
            link_network(&theirs[k], net);
            if (memcmp(l.net, net, 16) != 0)
                continue;
            for (at = n++; at > 0 && link_before(&l, &all[at - 1]); at--)
                all[at] = all[at - 1];
            all[at] = l;
        }
    }
    return n;
}

uint32_t tcp_links(const struct tcp_address *ours, uint32_t n_ours, const struct tcp_address *theirs, uint32_t n_theirs,
                   uint8_t link[TCP_ADDRESSES], uint8_t speed[TCP_ADDRESSES])
{
    struct link all[TCP_ADDRESSES * TCP_ADDRESSES];
    uint32_t n_all = link_candidates(ours, n_ours, theirs, n_theirs, all), n = 0, our_used = 0, their_used = 0;

    for (uint32_t i = 0; i < n_all; i++) {
        if (our_used & 1u << all[i].our_interface || their_used & 1u << all[i].their_interface)
            continue;
        our_used |= 1u << all[i].our_interface;
        their_used |= 1u << all[i].their_interface;
        speed[n] = all[i].speed;
        link[n++] = all[i].theirs;
    }
    return n;
}

uint8_t tcp_speed_code(uint64_t mbits)
{
    uint32_t power = 0;

    if (mbits == 0 || mbits > UINT32_MAX >> 2)
        return 0;
    while (mbits >> (power + 1))
        power++;
    return (uint8_t)((power + 1) << 3 | ((mbits << 3 >> power) & 7));
}

uint64_t tcp_speed_mbits(uint8_t code)
{
    return code < 8 ? 0 : (uint64_t)(8 | (code & 7)) << ((code >> 3) - 1) >> 3;
}

uint32_t tcp_link_bandwidth(const uint8_t *speed, uint32_t n, uint32_t i, uint32_t bandwidth)
{
    uint64_t mine = i < n ? tcp_speed_mbits(speed[i]) : 0, most = mine, part;

    if (mine == 0) /* not known; a code that means nothing is the peer's */
        return bandwidth;
    for (uint32_t k = 0; k < n; k++)
        most = tcp_speed_mbits(speed[k]) > most ? tcp_speed_mbits(speed[k]) : most;
    part = bandwidth * mine / most;
    return part ? (uint32_t)part : 1;
}

uint32_t tcp_interfaces(const struct tcp_address *ours, uint32_t n)
{
    uint32_t used = 0, count = 0;

    for (uint32_t i = 0; i < n; i++) {
        count += link_usable(&ours[i]) && !(used & 1u << ours[i].interface);
        if (link_usable(&ours[i]))
            used |= 1u << ours[i].interface;
    }
    return count;
}

/* Which addresses are published, and in which order a peer's are dialled. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <errno.h>
#include "raw_socket.h"

enum { MOST = 16 };
static struct ifaddrs nets[MOST];
static struct sockaddr_in6 at[MOST], mask[MOST];
static int n_nets;
static uint32_t left_out; /* of the addresses listed last */

static void net(const char *name, const char *ip, int prefix, unsigned flags)
{
    struct ifaddrs *i = &nets[n_nets];
    int family = strchr(ip, ':') ? AF_INET6 : AF_INET;
    uint8_t bits[16] = {0};

    for (int b = 0; b < prefix; b++)
        bits[b / 8] |= (uint8_t)(0x80 >> b % 8);
    memset(&at[n_nets], 0, sizeof at[0]);
    memset(&mask[n_nets], 0, sizeof mask[0]);
    if (family == AF_INET) {
        struct sockaddr_in *a = (void *)&at[n_nets], *m = (void *)&mask[n_nets];
        ck_assert_int_eq(inet_pton(family, ip, &a->sin_addr), 1);
        memcpy(&m->sin_addr, bits, 4);
    } else {
        ck_assert_int_eq(inet_pton(family, ip, &at[n_nets].sin6_addr), 1);
        memcpy(&mask[n_nets].sin6_addr, bits, 16);
    }
    at[n_nets].sin6_family = (sa_family_t)family;
    *i = (struct ifaddrs){.ifa_name = (char *)(uintptr_t)name,
                          .ifa_flags = IFF_UP | IFF_RUNNING | flags,
                          .ifa_addr = (void *)&at[n_nets],
                          .ifa_netmask = (void *)&mask[n_nets]};
    if (n_nets)
        nets[n_nets - 1].ifa_next = i;
    n_nets++;
}

static void machine(void)
{
    n_nets = 0;
    net("lo", "127.0.0.1", 8, IFF_LOOPBACK);
    net("docker0", "172.17.0.1", 16, 0);
    net("eth0", "fd00::5", 64, 0);
    net("eth0", "fe80::5", 64, 0);
    net("eth0", "10.1.0.5", 16, 0);
    net("eth1", "192.168.7.5", 24, 0);
}

static struct tcp_filter *filter(const char *list)
{
    struct tcp_filter *f;
    char why[160] = "";

    ck_assert_msg(tcp_filter_parse(list, &f, why, sizeof why) == STRATA_OK, "%s", why);
    return f;
}

/* The addresses as one text. */
static const char *published(const char *include, const char *exclude)
{
    static char all[400];
    struct tcp_filter *in = filter(include), *out = filter(exclude);
    struct tcp_address a[TCP_ADDRESSES];
    uint32_t n = tcp_addresses(nets, in, out, a, &left_out);
    char text[TCP_TEXT];

    all[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", tcp_address_text(a[i].ip, text));
    tcp_filter_free(in);
    tcp_filter_free(out);
    return all;
}

START_TEST(publishing)
{
    ck_assert_str_eq(published("", ""), "10.1.0.5 192.168.7.5 fd00::5 172.17.0.1 127.0.0.1");
    ck_assert_str_eq(published("eth0", ""), "10.1.0.5 fd00::5");
    ck_assert_str_eq(published("10.1.0.0/16, lo", ""), "10.1.0.5 127.0.0.1");
    ck_assert_str_eq(published("10.1.0.5", ""), "10.1.0.5");
    ck_assert_str_eq(published("", "docker0,fd00::/8,127.0.0.0/8"), "10.1.0.5 192.168.7.5");
    ck_assert_str_eq(published("eth0,eth1", "192.168.0.0/17"), "10.1.0.5 fd00::5");
    ck_assert_str_eq(published("192.168.7.128/25", ""), "");
    ck_assert_str_eq(published("0.0.0.0/0", ""), "10.1.0.5 192.168.7.5 172.17.0.1 127.0.0.1");
    ck_assert_str_eq(published("eth", ""), ""); /* whole names */
    for (int i = 0; i < 4; i++)
        net("eth2", (const char *[]){"10.2.0.1", "10.2.0.2", "10.2.0.3", "10.2.0.4"}[i], 16, 0);
    ck_assert_str_eq(published("", ""), "10.1.0.5 192.168.7.5 10.2.0.1 10.2.0.2 10.2.0.3 10.2.0.4 fd00::5 172.17.0.1");
    ck_assert_uint_eq(left_out, 0);
    net("eth2", "10.2.0.5", 16, 0);
    net("eth2", "fd00::6", 64, 0);
    ck_assert_str_eq(published("", ""), "10.1.0.5 192.168.7.5 10.2.0.1 10.2.0.2 10.2.0.3 10.2.0.4 10.2.0.5 fd00::5");
    ck_assert_uint_eq(left_out, 2);
    n_nets = 0;
    net("lo", "127.0.0.1", 8, IFF_LOOPBACK);
    ck_assert_str_eq(published("", ""), "127.0.0.1");
}
END_TEST

/* The kernel gives an address's label as its interface's name. */
START_TEST(labels)
{
    struct tcp_address a[TCP_ADDRESSES];

    net("eth1:2", "192.168.9.5", 24, 0);
    net("eth10", "10.10.0.5", 16, 0);
    ck_assert_str_eq(published("eth1", ""), "192.168.7.5 192.168.9.5");
    ck_assert_str_eq(published("eth1:2", ""), "192.168.9.5");
    ck_assert_str_eq(published("", "eth1,lo,docker0,eth10"), "10.1.0.5 fd00::5");
    ck_assert_str_eq(published("10.1.0.0/16,eth1", "eth1:2"), "10.1.0.5 192.168.7.5");
    ck_assert_uint_eq(tcp_interfaces(a, tcp_addresses(nets, NULL, NULL, a, &left_out)), 3);
}
END_TEST

START_TEST(wrong_lists)
{
    static const char *const wrong[] = {"10.0.0.0/33", "10.0.0.0/",  "eth0,,eth1",
                                        "10.0.0.0/8x", "fd00::/129", "a-name-longer-than-any-interface",
                                        "eth0/8",      ","};
    struct tcp_filter *f;
    char why[160];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        why[0] = '\0';
        ck_assert_int_eq(tcp_filter_parse(wrong[i], &f, why, sizeof why), STRATA_ERR_PARAM);
        ck_assert_ptr_null(f);
        ck_assert_str_ne(why, "");
    }
}
END_TEST

static void order_of(const char *const *theirs, int n, bool local, const char *expected)
{
    struct tcp_address all[TCP_ADDRESSES], ours[TCP_ADDRESSES];
    uint8_t order[TCP_ADDRESSES];
    uint32_t n_all, n_ours;
    char text[TCP_TEXT], got[400] = "";

    machine();
    n_ours = tcp_addresses(nets, NULL, NULL, ours, &left_out);
    n_nets = 0;
    for (int i = 0; i < n; i++)
        net(strncmp(theirs[i], "172.", 4) == 0 ? "docker0" : "eth0", theirs[i], strchr(theirs[i], ':') ? 64 : 16,
            strncmp(theirs[i], "127.", 4) == 0 ? IFF_LOOPBACK : 0);
    n_all = tcp_addresses(nets, NULL, NULL, all, &left_out);
    n_all = tcp_order(all, n_all, ours, n_ours, local, order);
    for (uint32_t i = 0; i < n_all; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i ? " " : "",
                 tcp_address_text(all[order[i]].ip, text));
    ck_assert_str_eq(got, expected);
}

/* Networks that both have come first, bridges of containers late though both have them, loopback on one machine only.
 */
START_TEST(ordering)
{
    static const char *const theirs[] = {"172.17.0.1", "10.9.0.6", "fd00::6", "10.1.0.6", "127.0.0.1"};

    order_of(theirs, 5, false, "10.1.0.6 fd00::6 10.9.0.6 172.17.0.1");
    order_of(theirs, 5, true, "127.0.0.1 10.1.0.6 fd00::6 10.9.0.6 172.17.0.1");
    order_of(theirs + 4, 1, false, "127.0.0.1");
}
END_TEST

/* The links of this machine and of another one, as one text; both must find the same. */
static const char *links_with(const char *const *names, const char *const *ips, const int *prefixes, int n)
{
    static char text[512];
    struct tcp_address ours[TCP_ADDRESSES], theirs[TCP_ADDRESSES];
    uint8_t there[TCP_ADDRESSES], here[TCP_ADDRESSES], speed[2][TCP_ADDRESSES];
    uint32_t n_ours = tcp_addresses(nets, NULL, NULL, ours, &left_out), n_theirs, n_links;
    char one[TCP_TEXT];

    n_nets = 0;
    for (int i = 0; i < n; i++)
        net(names[i], ips[i], prefixes[i], 0);
    n_theirs = tcp_addresses(nets, NULL, NULL, theirs, &left_out);
    for (uint32_t i = 0; i < n_ours; i++)
        ours[i].speed = (uint8_t)(8 + ours[i].interface);
    for (uint32_t i = 0; i < n_theirs; i++)
        theirs[i].speed = (uint8_t)(9 - theirs[i].interface);
    n_links = tcp_links(ours, n_ours, theirs, n_theirs, there, speed[0]);
    ck_assert_uint_eq(tcp_links(theirs, n_theirs, ours, n_ours, here, speed[1]), n_links);
    ck_assert_mem_eq(speed[0], speed[1], n_links);
    text[0] = '\0';
    for (uint32_t i = 0; i < n_links; i++) {
        ck_assert_uint_eq(ours[here[i]].prefix, theirs[there[i]].prefix);
        ck_assert_uint_eq(speed[0][i],
                          ours[here[i]].speed < theirs[there[i]].speed ? ours[here[i]].speed : theirs[there[i]].speed);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 tcp_address_text(theirs[there[i]].ip, one));
    }
    return text;
}

/* Each interface is in one link at most, whatever addresses it has. */
START_TEST(links)
{
    static const char *const names[] = {"ib0", "eth5", "eth5", "docker0"};
    static const char *const ips[] = {"192.168.7.6", "fd00::6", "10.1.0.6", "172.17.0.1"};
    static const int prefixes[] = {24, 64, 16, 16};

    ck_assert_str_eq(links_with(names, ips, prefixes, 4), "10.1.0.6 192.168.7.6");
    machine();
    ck_assert_str_eq(links_with(names, ips, prefixes, 1), "192.168.7.6");
    machine();
    ck_assert_str_eq(links_with(names + 1, ips + 1, prefixes + 1, 1), "fd00::6");
    machine();
    ck_assert_str_eq(links_with(names, ips, (const int[]){25, 64, 12, 16}, 4), "fd00::6");
    machine();
    ck_assert_str_eq(links_with(names + 3, ips + 3, prefixes + 3, 1), ""); /* a bridge is none */
}
END_TEST

/* Speeds that interfaces have come back as nearly the same, in their order; no other number is a speed. */
START_TEST(speeds)
{
    static const uint64_t mbits[] = {1,     10,    54,    100,   1000,   2500,   5000,
                                     10000, 25000, 40000, 56000, 100000, 400000, 800000};
    uint8_t before = 0;

    for (size_t i = 0; i < sizeof mbits / sizeof mbits[0]; i++) {
        uint8_t code = tcp_speed_code(mbits[i]);
        ck_assert_uint_gt(code, before);
        ck_assert_uint_le(tcp_speed_mbits(code), mbits[i]);
        ck_assert_uint_ge(tcp_speed_mbits(code) * 9 / 8 + 1, mbits[i]);
        before = code;
    }
    ck_assert_uint_eq(tcp_speed_code(0), 0);
    ck_assert_uint_eq(tcp_speed_code(UINT32_MAX), 0);
    ck_assert_uint_eq(tcp_speed_mbits(0), 0);
}
END_TEST

/* The faster link of a pair has the whole bandwidth as its weight, the slower one its part. */
START_TEST(weights)
{
    uint8_t speed[] = {tcp_speed_code(100000), tcp_speed_code(10000), 0, tcp_speed_code(1)};

    ck_assert_uint_eq(tcp_link_bandwidth(speed, 4, 0, 1000), 1000);
    ck_assert_uint_eq(tcp_link_bandwidth((const uint8_t[]){5, 7}, 2, 1, 1000), 1000); /* codes that mean nothing */
    ck_assert_uint_ge(tcp_link_bandwidth(speed, 4, 1, 1000), 90);
    ck_assert_uint_le(tcp_link_bandwidth(speed, 4, 1, 1000), 112);
    ck_assert_uint_eq(tcp_link_bandwidth(speed, 4, 2, 1000), 1000); /* unknown */
    ck_assert_uint_eq(tcp_link_bandwidth(speed, 4, 3, 1000), 1);    /* 0 would be no path */
    ck_assert_uint_eq(tcp_link_bandwidth(speed, 4, 7, 1000), 1000);
    ck_assert_uint_eq(tcp_link_bandwidth(speed + 1, 1, 0, 1000), 1000);
}
END_TEST

START_TEST(interfaces)
{
    struct tcp_address a[TCP_ADDRESSES];

    ck_assert_uint_eq(tcp_interfaces(a, tcp_addresses(nets, NULL, NULL, a, &left_out)), 2);
}
END_TEST

START_TEST(ports)
{
    static const char *const wrong[] = {"x", "0", "70000", "5-", "9-5", "5-70000", "5-6-7", "-5", "5 "};
    uint16_t first, last;

    ck_assert(tcp_ports_parse("", &first, &last) && first == 0 && last == 0);
    ck_assert(tcp_ports_parse("5000", &first, &last) && first == 5000 && last == 5000);
    ck_assert(tcp_ports_parse("5000-5010", &first, &last) && first == 5000 && last == 5010);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!tcp_ports_parse(wrong[i], &first, &last), "%s", wrong[i]);
}
END_TEST

/* The reason names the parameter. */
START_TEST(ports_exhausted)
{
    char why[256] = "", range[16];

    rig_open(0);
    snprintf(range, sizeof range, "%u", rig_card[0].port);
    ck_assert_int_eq(rig_try_open(1, range, why, sizeof why), STRATA_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(why, "btl_tcp_ports"));
    ck_assert_ptr_nonnull(strstr(why, range));
    ck_assert_ptr_nonnull(strstr(why, "needs 4 "));
    ck_assert_ptr_nonnull(strstr(why, "4 processes and 1 links (btl_tcp_links)"));
    ck_assert_int_eq(rig_try_open(1, "1-x", why, sizeof why), STRATA_ERR_PARAM);
    rig_close(0);
}
END_TEST

/* Whether the caller of that address is accepted: at once or never, on this machine. */
static bool accepts(const uint8_t ip[16], uint16_t port)
{
    struct sockaddr_storage to;
    socklen_t n = st_socket_address(ip, port, &to);
    int fd = socket(to.ss_family, SOCK_STREAM, 0), rc;

    ck_assert_int_ge(fd, 0);
    rc = connect(fd, (struct sockaddr *)&to, n);
    ck_assert(rc == 0 || errno == ECONNREFUSED);
    if (rc == 0) {
        AWAIT(rig[1].m->n_strangers == 1, rig_poll());
        close(fd);
        AWAIT(rig[1].m->n_strangers == 0, rig_poll());
    } else {
        close(fd);
    }
    return rc == 0;
}

/* With a list of interfaces a process listens at the addresses that it leaves, at one port, and at no other. */
START_TEST(listens_where_the_list_says)
{
    static const uint8_t beside[16] = {[10] = 0xff, 0xff, 127, 0, 0, 77};
    static const char *const lists[] = {"lo", "0.0.0.0/0", "0.0.0.0/0,::/0"};
    struct st_btl_endpoint *ep;
    char why[256] = "", range[16];
    const struct tcp_card *card = &rig_card[1];

    rig_include = lists[_i];
    rig_open(0);
    rig_open(1);
    for (uint32_t i = 0; i < card->n; i++)
        ck_assert(accepts(card->address[i].ip, card->port));
    ck_assert(!accepts(beside, card->port));
    ep = rig_connect(0, 1);
    AWAIT(rig_send(ep, 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1, rig_poll());
    snprintf(range, sizeof range, "%u", card->port);
    ck_assert_int_eq(rig_try_open(2, range, why, sizeof why), STRATA_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(why, "btl_tcp_ports"));
    rig_close(0);
    rig_close(1);
    rig_include = "";
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp addresses");
    TCase *tc = tcase_create("addresses");

    tcase_add_checked_fixture(tc, machine, NULL);
    tcase_add_test(tc, publishing);
    tcase_add_test(tc, labels);
    tcase_add_test(tc, wrong_lists);
    tcase_add_test(tc, ordering);
    tcase_add_test(tc, links);
    tcase_add_test(tc, speeds);
    tcase_add_test(tc, weights);
    tcase_add_test(tc, interfaces);
    tcase_add_test(tc, ports);
    tcase_add_test(tc, ports_exhausted);
    tcase_add_loop_test(tc, listens_where_the_list_says, 0, 3);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* Addresses of links. */
/* one thread */
#include <check.h>
#include <stdio.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <unistd.h>

#include "channel/link.h"
#include "support/await.h"
#include "support/run_suite.h"

/* Whether a process that connects reaches the listener there. */
static bool reached(const strata_channel_link_t *l, const char *address)
{
    int fd;
    int rc = link_dial(l, address, st_now_ms() + AWAIT_LIMIT_S * 1000, &fd);

    if (rc == STRATA_OK)
        close(fd);
    return rc == STRATA_OK;
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = st_socket_listen_at((struct sockaddr *)&at, sizeof(at));

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* All addresses: IPv4, IPv6, and the one that it names. */
START_TEST(no_host)
{
    strata_channel_link_t l = {.listener = -1};
    char address[80];

    ck_assert_int_eq(link_listen(&l, ":0"), STRATA_OK);
    ck_assert_msg(l.address[0] != ':' && reached(&l, l.address), "%s", l.address);
    unsigned port = st_socket_port(l.listener);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    ck_assert(reached(&l, address));
    (void)snprintf(address, sizeof(address), "[::1]:%u", port);
    ck_assert(!has_ipv6() || reached(&l, address));
    close(l.listener);
}
END_TEST

START_TEST(a_host)
{
    strata_channel_link_t l = {.listener = -1};
    char address[80];

    ck_assert_int_eq(link_listen(&l, "127.0.0.1:0"), STRATA_OK);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", st_socket_port(l.listener));
    ck_assert_str_eq(l.address, address);
    ck_assert(reached(&l, address));
    close(l.listener);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_link_address");
    TCase *tc = tcase_create("address");

    tcase_add_test(tc, no_host);
    tcase_add_test(tc, a_host);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* Links between processes that were started apart: what outlives the calls. */
#include "support/run_suite.h"
#include <check.h>
#include <stdio.h>
#include <strata/channel_link.h>
#include <strata/sdk/socket.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void setup(void)
{
    setenv("STRATA_CHANNEL_SECRET", "a secret that only this test knows", 1);
}

static const strata_setting_t settings[] = {{"btl", "sm,self"}};

static strata_config_t config_with(char *text, size_t size)
{
    strata_config_t c = STRATA_CONFIG_INIT;

    c.settings = settings;
    c.n_settings = 1;
    c.error_text = text;
    c.error_text_size = size;
    return c;
}

/* The text is the caller's again when listen returns; what is wrong later goes
 * to stderr. */
START_TEST(text_of_the_caller)
{
    char text[200] = "";
    strata_config_t config = config_with(text, sizeof(text));
    strata_channel_link_t *l;
    struct rlimit all, none;
    int fd, number;

    ck_assert_msg(strata_channel_listen("127.0.0.1:0", &config, &l) == STRATA_OK, "%s", text);
    int port = atoi(strrchr(strata_channel_link_address(l), ':') + 1);
    fd = st_socket_dial(st_socket_loopback, (uint16_t)port);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &all), 0);
    none = all;
    none.rlim_cur = 3;
    (void)snprintf(text, sizeof(text), "mine");
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = strata_channel_accept(l, 0, &number);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &all), 0);
    ck_assert_int_eq(rc, STRATA_ERR_SYSTEM);
    ck_assert_str_eq(text, "mine");
    close(fd);
    ck_assert_int_eq(strata_channel_link_close(l), STRATA_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_link");
    TCase *tc = tcase_create("link");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, text_of_the_caller);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* Links between processes that were started apart: what outlives the calls, progress while one waits for others. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strata/channel_link.h>
#include <strata/sdk/socket.h>
#include <sys/resource.h>
#include <unistd.h>
#include "support/await.h"
#include "support/run_suite.h"
#include "support/world.h"

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

/* The text is the caller's again when listen returns; what is wrong later goes to stderr. */
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

/* ---- one that has connected ---- */

enum { MESSAGES = 20, LIMIT_MS = AWAIT_LIMIT_S * 1000 };

static struct {
    const char *address;
    atomic_bool opened, accepts;
} other;

static void *other_main(void *arg)
{
    char text[200] = "", got;
    strata_config_t config = config_with(text, sizeof(text));
    strata_channel_link_t *l, *second;
    strata_channel_receiver_t *c;

    CHECK_MSG(strata_channel_connect(other.address, LIMIT_MS, &config, &l) == STRATA_OK, "%s", text);
    CHECK_OK(strata_channel_open_recv(strata_channel_link_context(l), 0, "x", 0, &c));
    atomic_store(&other.opened, true);
    while (!atomic_load(&other.accepts))
        (void)usleep(1000);
    for (char i = 0; i < (char)MESSAGES; i++) {
        CHECK_OK(strata_channel_recv(c, &got, 1, NULL, LIMIT_MS));
        CHECK_EQ(got, i);
    }
    CHECK_MSG(strata_channel_connect(other.address, LIMIT_MS, &config, &second) == STRATA_OK, "%s", text);
    CHECK_RC(strata_channel_recv(c, &got, 1, NULL, STRATA_CHANNEL_FOREVER), STRATA_CHANNEL_ENDED);
    CHECK_OK(strata_channel_close_recv(c));
    CHECK_OK(strata_channel_link_close(second));
    CHECK_OK(strata_channel_link_close(l));
    return arg;
}

/* Messages that wait for others leave while accept waits: for one that connects when all have come. */
START_TEST(accept_makes_progress)
{
    char text[200] = "";
    strata_config_t config = config_with(text, sizeof(text));
    strata_channel_link_t *l;
    strata_channel_sender_t *c;
    pthread_t id;
    int number;

    ck_assert_msg(strata_channel_listen("127.0.0.1:0", &config, &l) == STRATA_OK, "%s", text);
    other.address = strata_channel_link_address(l);
    ck_assert_int_eq(pthread_create(&id, NULL, other_main, NULL), 0);
    ck_assert_int_eq(strata_channel_accept(l, LIMIT_MS, &number), STRATA_OK);
    ck_assert_int_eq(number, 1);
    ck_assert_int_eq(strata_channel_open_send(strata_channel_link_context(l), 1, "x", &c), STRATA_OK);
    while (!atomic_load(&other.opened))
        (void)strata_progress(strata_channel_link_context(l));
    for (char i = 0; i < (char)MESSAGES; i++)
        ck_assert_int_eq(strata_channel_send(c, &i, 1, STRATA_CHANNEL_FOREVER), STRATA_OK);
    atomic_store(&other.accepts, true);
    ck_assert_int_eq(strata_channel_accept(l, LIMIT_MS, &number), STRATA_OK);
    ck_assert_int_eq(number, 2);
    ck_assert_int_eq(strata_channel_close_send(c), STRATA_OK);
    ck_assert_int_eq(pthread_join(id, NULL), 0);
    ck_assert_int_eq(strata_channel_link_close(l), STRATA_OK);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("channel_link");
    TCase *tc = tcase_create("link");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, text_of_the_caller);
    tcase_add_test(tc, accept_makes_progress);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* An embedder whose table answers wrongly or late: the message says what was asked of whom, and a `get` that waits for
 * the peer's publication makes a peer that is still in its init reachable. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support/let_run.h"
#include "support/run_suite.h"
#include "support/world.h"

/* The table of one rank, over that of a world of threads, whose get waits. */
struct late {
    strata_host_t host;
    const strata_host_t *real;
    bool impatient;
    _Atomic(bool) asked; /* about rank 1 */
    char log[4000];
};

static int late_put(void *user, const char *key, const void *blob, size_t length)
{
    struct late *l = user;
    return l->real->put(l->real->user, key, blob, length);
}
static int late_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    struct late *l = user;
    if (rank == 1)
        atomic_store(&l->asked, true);
    return l->impatient ? STRATA_ERR_NOT_FOUND : l->real->get(l->real->user, rank, key, blob, length);
}
static int late_fence(void *user)
{
    struct late *l = user;
    return l->impatient ? STRATA_OK : l->real->fence(l->real->user); /* impatient: it is alone */
}
static void late_log(void *user, int level, const char *text)
{
    struct late *l = user;
    (void)level;
    size_t n = strlen(l->log);
    snprintf(l->log + n, sizeof l->log - n, "%s\n", text);
}

static strata_t *start(struct late *l, struct tw_world *w, const char *btl)
{
    strata_config_t c = STRATA_CONFIG_INIT;
    strata_setting_t setting = {"btl", btl};
    strata_t *s = NULL;
    l->real = tw_host(w, 0);
    l->host = (strata_host_t){.size = sizeof l->host,
                              .user = l,
                              .rank = 0,
                              .n_ranks = 2,
                              .job_id = l->real->job_id,
                              .host_name = "here",
                              .put = late_put,
                              .get = late_get,
                              .fence = late_fence,
                              .log = late_log};
    c.settings = &setting;
    c.n_settings = 1;
    c.host = &l->host;
    ck_assert_int_eq(strata_init(&c, &s), STRATA_OK);
    return s;
}

START_TEST(says_what_was_asked)
{
    struct tw_world *w = tw_create(&(struct tw_options){.n = 2});
    struct late l = {.impatient = true};
    strata_t *s = start(&l, w, "sm,self");
    ck_assert_int_eq(strata_send(strata_world(s), "x", 1, 1, 0), STRATA_ERR_UNREACHABLE);
    const char *line = strstr(l.log, "no transport reaches rank 1");
    ck_assert_msg(line != NULL, "%s", l.log);
    ck_assert_msg(strstr(line, "get(rank 1, key \"btl_sm\") answered: ") != NULL, "%s", line);
    ck_assert_msg(strstr(line, strata_strerror(STRATA_ERR_NOT_FOUND)) != NULL, "%s", line);
    ck_assert_msg(strstr(line, strata_strerror(STRATA_ERR_UNREACHABLE)) == NULL, "a circular reason: %s", line);
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    tw_destroy(w);
}
END_TEST

struct young {
    struct tw_world *world;
    struct late *old;
};

/* Rank 1 begins its init when rank 0 waits for what it publishes. */
static void *peer(void *arg)
{
    const struct young *y = arg;
    strata_t *s = NULL;
    char in = 0;
    while (!atomic_load(&y->old->asked))
        let_run();
    CHECK_OK(tw_init(y->world, 1, &s, NULL, 0));
    CHECK_OK(strata_recv(strata_world(s), &in, 1, 0, 0, NULL));
    CHECK_EQ(in, 'x');
    CHECK_OK(strata_send(strata_world(s), "y", 1, 0, 0));
    CHECK_OK(strata_finalize(s));
    return NULL;
}

/* The peer is not there when it is asked about. */
START_TEST(get_waits)
{
    struct tw_world *w = tw_create(&(struct tw_options){.n = 2, .settings = "btl=sm,self"});
    struct late l = {.impatient = false};
    struct young young = {w, &l};
    pthread_t other;
    char in = 0;
    ck_assert_int_eq(pthread_create(&other, NULL, peer, &young), 0);
    strata_t *s = start(&l, w, "sm,self");
    ck_assert_int_eq(strata_send(strata_world(s), "x", 1, 1, 0), STRATA_OK);
    ck_assert_int_eq(strata_recv(strata_world(s), &in, 1, 1, 0, NULL), STRATA_OK);
    ck_assert_int_eq(in, 'y');
    ck_assert_int_eq(strata_finalize(s), STRATA_OK);
    ck_assert_int_eq(pthread_join(other, NULL), 0);
    ck_assert_str_eq(l.log, "");
    tw_destroy(w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("embedding");
    TCase *tc = tcase_create("table");
    tcase_add_test(tc, says_what_was_asked);
    tcase_add_test(tc, get_waits);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}

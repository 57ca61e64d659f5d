/* The segment's descriptor through the owner's socket: always handed over while the owner serves, and a reason when it
 * does not. */
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include "rig.h"
#include "support/await.h"
#include "support/run_suite.h"

struct owner {
    struct rig_rank *r;
    _Atomic(bool) stop;
};

static void *serve(void *arg)
{
    struct owner *o = arg;
    struct sm_module *m = sm_module(o->r->btl);
    struct pollfd p = {.fd = m->listen_fd, .events = POLLIN};
    while (!atomic_load(&o->stop)) {
        poll(&p, 1, 1); /* asleep: on a busy machine it runs as soon as somebody asks */
        sm_socket_serve(m);
    }
    return NULL;
}

static struct rig_rank *opened(struct rig_board *b, int rank, int64_t timeout_ms)
{
    struct rig_rank *r = malloc(sizeof *r);
    rig_init(r, b, rank);
    r->par.attach_timeout_ms = timeout_ms;
    rig_open(r);
    return r;
}
static void closed(struct rig_rank *r)
{
    rig_close(r);
    free(r);
}

static ino_t file_of(int fd)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    return st.st_ino;
}

/* The owner answers and closes at the very moment when the peer looks for the answer. */
START_TEST(handed_over_every_time)
{
    struct rig_board *b = rig_board(2);
    const int net_ms = AWAIT_LIMIT_S * 1000;
    struct rig_rank *host = opened(b, 0, net_ms), *peer = opened(b, 1, net_ms);
    struct sm_module *m = sm_module(peer->btl);
    struct owner o = {.r = host};
    struct sm_card card;
    pthread_t t;
    ino_t file = file_of(sm_module(host->btl)->seg.fd);
    ck_assert_int_eq(sm_card_fetch(m, 0, &card, NULL, 0), STRATA_OK);
    ck_assert_int_eq(pthread_create(&t, NULL, serve, &o), 0);
    /* Where each turn waits long for the other thread fewer must do. */
    time_t enough = time(NULL) + 20;
    for (int i = 0; i < 20000 && (i < 1000 || time(NULL) < enough); i++) {
        char why[256] = "";
        int fd = sm_socket_fetch(m, &card, why, sizeof why);
        ck_assert_msg(fd >= 0, "turn %d: %s", i, why);
        ck_assert_uint_eq(file_of(fd), file);
        close(fd);
    }
    atomic_store(&o.stop, true);
    pthread_join(t, NULL);
    closed(peer);
    closed(host);
}
END_TEST

START_TEST(not_served)
{
    struct rig_board *b = rig_board(2);
    struct rig_rank *host = opened(b, 0, 10000), *peer = opened(b, 1, 50);
    struct sm_module *m = sm_module(peer->btl);
    struct sm_card card;
    char why[256] = "";
    ck_assert_int_eq(sm_card_fetch(m, 0, &card, NULL, 0), STRATA_OK);
    ck_assert_int_eq(sm_socket_fetch(m, &card, why, sizeof why), -1);
    ck_assert_ptr_nonnull(strstr(why, "made no progress"));
    closed(host);
    ck_assert_int_eq(sm_socket_fetch(m, &card, why, sizeof why), -1);
    ck_assert_ptr_nonnull(strstr(why, "refused"));
    card.socket[0] = 0;
    ck_assert_int_eq(sm_socket_fetch(m, &card, why, sizeof why), -1);
    ck_assert_ptr_nonnull(strstr(why, "serves no socket"));
    closed(peer);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("socket");
    TCase *t = tcase_create("socket");
    tcase_add_test(t, handed_over_every_time);
    tcase_add_test(t, not_served);
    suite_add_tcase(s, t);
    return run_suite(s);
}

/* Peers that do not answer. Each case has a network namespace of its own, whose only interface is the loopback: while
 * that is down nothing arrives and nothing is refused, as with a cable that was pulled. */
/* one thread */
/* starts first */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <strata/sdk/clock.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw_peer.h"

#define TIMEOUT_MS 2000  /* the kernel's probes are a second apart at least */
#define PATIENT_MS 4000  /* for a link that comes back in time */
#define PROBED_MS  8000  /* keepalive ends a connection before the module's own looks do */
#define SLACK_MS   60000 /* a busy machine */

static int control = -1; /* a socket for ioctl */

static bool set_link(bool up)
{
    struct ifreq r = {.ifr_name = "lo"};

    if (ioctl(control, SIOCGIFFLAGS, &r) != 0)
        return false;
    r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
    return ioctl(control, SIOCSIFFLAGS, &r) == 0;
}

static void open_both(int64_t timeout_ms)
{
    ck_assert(set_link(true));
    memset(rig_card, 0, sizeof rig_card);
    rig_mends = true;
    rig_local = false;
    for (int i = 0; i < 2; i++) {
        rig_open(i);
        rig[i].par.timeout_ms = timeout_ms;
        rig[i].par.close_timeout_ms = 100;
    }
    AWAIT(rig_send(rig_connect(0, 1), 1, NULL, 0) == STRATA_OK, rig_poll());
    AWAIT(rig[1].arrived == 1, rig_poll());
}

static void setup(void)
{
    open_both(TIMEOUT_MS);
}

static void setup_patient(void)
{
    open_both(PATIENT_MS);
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++)
        rig_close(i);
    (void)set_link(true);
}

static struct tcp_peer *peer_of(int rank, int peer)
{
    return st_rank_table_get(&rig[rank].m->peers, (uint32_t)peer);
}

/* A lane does this: a path that was lost is connected anew, until that is refused for ever. */
static bool is_gone(int rank)
{
    struct st_btl_endpoint *ep;

    rig_poll();
    return peer_of(rank, 1 - rank)->failed &&
           rig[rank].m->btl.ops->connect(&rig[rank].m->btl, 1 - rank, &ep) == STRATA_ERR_PEER;
}

/* Data under way, or none: the peer is lost after half of the time without an answer, and gone for good after all of
 * it, by its address. */
START_TEST(gone_without_a_word)
{
    uint64_t began, lost = 0, ms;

    ck_assert(set_link(false));
    began = st_now_ns();
    if (_i == 0)
        ck_assert_int_eq(rig_send(&peer_of(0, 1)->ep, 2, "abc", 3), STRATA_OK);
    AWAIT(is_gone(0), if (!lost && rig[0].lost) lost = st_now_ns());
    ms = (st_now_ns() - began) / TCP_MS;
    ck_assert_uint_eq(rig[1].arrived, 1);
    ck_assert_ptr_nonnull(strstr(rig[0].why, "127.0.0.1"));
    ck_assert_uint_ge((lost - began) / TCP_MS, TIMEOUT_MS / 2 - TIMEOUT_MS / 8);
    ck_assert_uint_le(ms, TIMEOUT_MS + SLACK_MS);
}
END_TEST

/* The link is back before: the connection is the same, and what was sent arrives. */
START_TEST(back_in_time)
{
    struct tcp_conn *c = peer_of(0, 1)->conn;
    uint64_t until;

    ck_assert(set_link(false));
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(rig_send(&peer_of(0, 1)->ep, 10 + i, "abc", 3), STRATA_OK);
    until = st_now_ns() + PATIENT_MS / 4 * TCP_MS;
    AWAIT(st_now_ns() > until, rig_poll());
    ck_assert_uint_eq(rig[1].arrived, 1);
    ck_assert(set_link(true));
    AWAIT(rig[1].arrived == 5, rig_poll());
    ck_assert_uint_eq(rig[1].last[0], 13);
    ck_assert_uint_eq(rig[0].lost + rig[1].lost, 0);
    ck_assert_ptr_eq(peer_of(0, 1)->conn, c);
}
END_TEST

/* A peer that computes and reads nothing answers by its kernel, whose buffers are full: it has not failed. */
START_TEST(busy_peer_is_not_silent)
{
    static char data[4096];
    uint64_t until = st_now_ns() + TIMEOUT_MS * TCP_MS;

    AWAIT(st_now_ns() > until, (void)rig_send(&peer_of(0, 1)->ep, 3, data, sizeof data);
          (void)rig[0].m->btl.ops->progress(&rig[0].m->btl));
    ck_assert_uint_gt(rig[0].m->count.blocked, 0);
    ck_assert_uint_eq(rig[0].lost, 0);
}
END_TEST

/* Module `rank`, and raw peers. */
static void open_alone(int rank, int64_t timeout_ms)
{
    ck_assert(set_link(true));
    memset(rig_card, 0, sizeof rig_card);
    rig_mends = true;
    rig_local = false;
    rig_open(rank);
    rig_card[0] = rig_card[rank]; /* the raw peers' is made of it */
    rig[rank].par.timeout_ms = timeout_ms;
    rig[rank].par.connect_timeout_ms = 3600000;
}

static void teardown_alone(void)
{
    rig_close(0);
    rig_close(2);
    (void)set_link(true);
}

/* A machine goes dark between two steps of a handshake: the connection ends by half of the time-out, however long the
 * step may take, and the peer has failed some time later: it has not hung up. */
START_TEST(dark_in_a_handshake)
{
    static const enum tcp_state states[] = {TCP_SAID_HELLO, TCP_SAID_HELLO, TCP_ANSWERED, TCP_CHOSEN, TCP_CHOSEN};
    int rank = states[_i] == TCP_ANSWERED ? 2 : 0, listener, fd, unsent = 1;
    struct st_btl_endpoint *ep = NULL;
    struct tcp_response response;
    const struct tcp_conn *c;
    struct tcp_said said;
    uint64_t began;

    open_alone(rank, _i == 0 ? TIMEOUT_MS : PROBED_MS);
    listener = raw_listen();
    if (_i == 4) { /* the lower rank was dialled */
        fd = raw_dial(0);
        ck_assert(raw_prove(fd, 3, 0, rig_card[0].key));
    } else {
        ep = rig_connect(rank, 1);
        fd = raw_accept(listener, ep);
        if (_i > 1) {
            raw_challenge(fd, &said);
            ck_assert(raw_read(fd, &response, sizeof response));
        }
    }
    c = ST_CONTAINER(rig[rank].m->conns.next, struct tcp_conn, node);
    AWAIT(c->state == states[_i], rig_poll());
    AWAIT(ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent == 0, rig_poll());
    ck_assert(set_link(false));
    began = st_now_ns();
    if (ep)
        dial_of(ep)->began = 1; /* long ago */
    AWAIT(rig[rank].m->n_conns == 0, rig_poll());
    if (ep) {
        ck_assert_uint_eq(rig[rank].lost, 0);
        ck_assert_uint_eq(dial_of(ep)->n_hung_up, 0);
        ck_assert_uint_gt(dial_of(ep)->began, began);
        rig[rank].par.connect_timeout_ms = 1;
        AWAIT(rig[rank].lost == 1, rig_poll());
        ck_assert_ptr_nonnull(strstr(rig[rank].why, "127.0.0.1"));
    }
    close(fd);
    close(listener);
}
END_TEST

/* The cases by their numbers: most of each is a wait for the kernel's clock, so that they run side by side, each in a
 * process with a namespace and a link of its own. */
enum { GONE = 0, BUSY = 2, BACK, DARK, CASES = DARK + 5 };

static TCase *case_of(int number)
{
    TCase *tc = tcase_create(number >= DARK   ? "silence in a handshake"
                             : number == BACK ? "silence that ends"
                                              : "silence");

    if (number >= DARK) {
        tcase_add_checked_fixture(tc, NULL, teardown_alone);
        tcase_add_loop_test(tc, dark_in_a_handshake, number - DARK, number - DARK + 1);
        return tc;
    }
    tcase_add_checked_fixture(tc, number == BACK ? setup_patient : setup, teardown);
    if (number < BUSY)
        tcase_add_loop_test(tc, gone_without_a_word, number - GONE, number - GONE + 1);
    else
        tcase_add_test(tc, number == BUSY ? busy_peer_is_not_silent : back_in_time);
    return tc;
}

static bool set_apart(int kind)
{
    return unshare(kind) == 0 && (control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0 && set_link(true);
}

static int run_case(int number)
{
    Suite *s = suite_create("tcp peers that do not answer");

    prctl(PR_SET_PDEATHSIG, SIGTERM); /* Check ends its own child on that */
    if (!set_apart(CLONE_NEWNET)) {
        printf("no network namespace for case %d: %s\n", number, strerror(errno));
        return EXIT_FAILURE;
    }
    suite_add_tcase(s, case_of(number));
    return run_suite(s);
}

int main(void)
{
    pid_t pids[CASES];
    int failed = 0, status;

    if (!set_apart(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET)) {
        printf("skipped: no network namespace can be made: %s\n", strerror(errno));
        return 77;
    }
    fflush(stdout);
    for (int i = 0; i < CASES; i++)
        if ((pids[i] = fork()) == 0)
            exit(run_case(i));
    for (int i = 0; i < CASES; i++)
        failed += pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0;
    printf("%d cases, %d failed\n", CASES, failed);
    return failed != 0;
}

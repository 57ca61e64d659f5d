/* The link of strata-miba: lines, heartbeats, and when the other side is called lost. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<infiniband/verbs.h>)

#include "support/await.h"
#include "support/fake_clock.h"

/* The test's part in each look of a side that hears, before poll; false: the look finds nothing. */
static bool (*in_look)(int nth);
static int n_looks;

static int look(struct pollfd *p, nfds_t n, int timeout_ms)
{
    if (in_look && !in_look(++n_looks))
        return 0;
    return poll(p, n, timeout_ms);
}

#define ADDRESSES 3

/* A host of several addresses, of which the one with this number answers; -1: none. A wait takes all its time. */
static int answers, n_waits;

static int some_addresses(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **list)
{
    static struct sockaddr_in at = {.sin_family = AF_INET};
    static struct addrinfo a[ADDRESSES];

    (void)host, (void)port, (void)hints;
    for (int i = 0; i < ADDRESSES; i++)
        a[i] = (struct addrinfo){.ai_family = AF_INET,
                                 .ai_addr = (struct sockaddr *)&at,
                                 .ai_addrlen = sizeof at,
                                 .ai_next = i + 1 < ADDRESSES ? &a[i + 1] : NULL};
    *list = a;
    return 0;
}

static int connect_later(int fd, const struct sockaddr *to, socklen_t n)
{
    (void)fd, (void)to, (void)n;
    errno = EINPROGRESS;
    return -1;
}

static int wait_for_answer(struct pollfd *p, nfds_t n, int timeout_ms)
{
    (void)n;
    if (n_waits++ == answers) {
        p->revents = POLLOUT;
        return 1;
    }
    fake_ns += (uint64_t)timeout_ms * 1000000u;
    return 0;
}

/* The tool is a program: its parts are compiled into this one. */
/* NOLINTBEGIN(bugprone-suspicious-include) */
#define poll look
#include "tools/strata-miba/link.c"
#undef poll
#include "tools/strata-miba/link_beat.c"
#define poll                wait_for_answer
#define connect             connect_later
#define getaddrinfo         some_addresses
#define freeaddrinfo(list_) ((void)(list_))
#include "tools/strata-miba/link_tcp.c"
#undef poll
#undef connect
#undef getaddrinfo
#undef freeaddrinfo
#include "tools/strata-miba/stats.c"
#include "tools/strata-miba/status.c"
/* NOLINTEND(bugprone-suspicious-include) */

#define SECOND UINT64_C(1000000000)

START_TEST(silence_is_what_was_looked_at)
{
    struct silence s = {0};

    silence_goes_on(&s, 100 * SECOND, 4 * SECOND);
    ck_assert_uint_eq(s.ns, 0);
    silence_goes_on(&s, 100 * SECOND + 10, 4 * SECOND);
    ck_assert_uint_eq(s.ns, 10);
    /* A minute in which nobody looked is no minute of silence. */
    silence_goes_on(&s, 160 * SECOND, 4 * SECOND);
    ck_assert_uint_eq(s.ns, SECOND + 10);
    for (unsigned i = 1; i < SILENCE_LOOKS; i++)
        silence_goes_on(&s, (160 + 2 * i) * SECOND, 4 * SECOND);
    ck_assert_uint_ge(s.ns, 4 * SECOND);
}
END_TEST

static void tick_of_test(int signal_number)
{
    (void)signal_number;
}

/* A side that hears one line, with a time-out of a second and signals as session.c has them. Exits with 0: "done", 1:
 * the peer is lost. */
static void hear_one(int fd)
{
    const struct sigaction a = {.sa_handler = tick_of_test};
    const struct itimerval every = {.it_interval = {.tv_usec = 50000}, .it_value = {.tv_usec = 50000}};
    struct link *l = calloc(1, sizeof *l);
    char line[LINE_MOST];
    struct miba_why why;

    if (!l || sigaction(SIGALRM, &a, NULL) || setitimer(ITIMER_REAL, &every, NULL))
        _exit(2);
    link_start(l, fd, 1);
    _exit(link_hear(l, line, false, &why) == MIBA_OK && strcmp(line, "done") == 0 ? 0 : 1);
}

/* A process with hear_one at one end of a pair of sockets. */
static pid_t hear_in_child(int ends[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        hear_one(ends[1]);
    return child;
}

static void child_ends(pid_t child, const int ends[2], int status)
{
    int how = 0;

    ck_assert_int_eq(waitpid(child, &how, 0), child);
    ck_assert(WIFEXITED(how));
    ck_assert_int_eq(WEXITSTATUS(how), status);
    close(ends[0]);
    close(ends[1]);
}

/* A look whose time is over when the process is stopped finds nothing. */
static bool stop_in_first_look(int nth)
{
    return nth > 1 || raise(SIGSTOP) != 0;
}

/* It is stopped for longer than its time-out, and the answer comes meanwhile. */
START_TEST(who_was_stopped_has_not_lost_its_peer)
{
    int ends[2], how = 0;

    in_look = stop_in_first_look;
    const pid_t child = hear_in_child(ends);
    in_look = NULL;
    ck_assert_int_eq(waitpid(child, &how, WUNTRACED), child);
    ck_assert(WIFSTOPPED(how));
    usleep(1200000);
    ck_assert_int_eq(write(ends[0], "done\n", 5), 5);
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    child_ends(child, ends, 0);
}
END_TEST

/* Its peer lives and says nothing. */
START_TEST(who_hears_nothing_ends)
{
    int ends[2];

    const pid_t child = hear_in_child(ends);
    child_ends(child, ends, 1);
}
END_TEST

static struct link hears, beats;
static int answer_at; /* the look in which the answer comes; 0: none */

/* A made-up clock goes on by the time between two heartbeats when one has come. */
static bool wait_for_beat(int nth)
{
    struct miba_why why;

    ck_assert_int_eq(poll(&(struct pollfd){.fd = hears.fd, .events = POLLIN}, 1, AWAIT_LIMIT_S * 1000), 1);
    fake_ns += BEAT_NS;
    if (nth == answer_at)
        ck_assert_int_eq(link_say(&beats, &why, "done"), MIBA_OK);
    return true;
}

/* The peer lives, and answers after more than a time-out, or never. */
START_TEST(heartbeats_are_signs_of_life)
{
    const int looks_in_timeout = 1000000000 / BEAT_NS;
    char line[LINE_MOST], first = 0;
    struct miba_why why;
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link_start(&hears, ends[0], 1);
    link_start(&beats, ends[1], 1);
    ck_assert(link_beats_start(&beats));
    ck_assert_int_eq(recv(ends[0], &first, 1, 0), 1); /* its thread does not look at the clock again */
    ck_assert_int_eq(first, '\n');
    fake_ns = 1;
    in_look = wait_for_beat;
    answer_at = looks_in_timeout + 2;
    ck_assert_int_eq(link_hear(&hears, line, false, &why), MIBA_OK);
    ck_assert_str_eq(line, "done");
    ck_assert_int_eq(n_looks, answer_at);
    answer_at = n_looks = 0;
    hears.patience = 2;
    ck_assert_int_eq(link_hear(&hears, line, false, &why), MIBA_LOST);
    ck_assert_msg(strstr(why.text, "it lives, but") != NULL, "%s", why.text);
    ck_assert_int_eq(n_looks, 2 * looks_in_timeout);
    in_look = NULL;
    fake_ns = 0;
    link_end(&beats);
    link_end(&hears);
}
END_TEST

/* A loop that looks at the link goes on at a heartbeat, and ends at a line, at a part of one, and at the link's end. */
START_TEST(heartbeats_end_no_loop)
{
    struct link *l = calloc(1, sizeof *l);
    char line[LINE_MOST];
    struct miba_why why;
    int ends[2];

    ck_assert_ptr_nonnull(l);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link_start(l, ends[0], 1);
    ck_assert(!link_stirs(l));
    ck_assert(!link_lives(l));
    ck_assert_int_eq(write(ends[1], "\n\n", 2), 2);
    ck_assert(!link_stirs(l));
    ck_assert(link_lives(l));
    ck_assert_uint_eq(l->held, 0);
    ck_assert_int_eq(write(ends[1], "\n\nready\n\n", 9), 9);
    ck_assert(link_stirs(l));
    ck_assert_int_eq(link_hear(l, line, false, &why), MIBA_OK);
    ck_assert_str_eq(line, "ready");
    ck_assert(!link_stirs(l));
    ck_assert_int_eq(write(ends[1], "\ndo", 3), 3);
    ck_assert(link_stirs(l));
    ck_assert_int_eq(write(ends[1], "ne\n", 3), 3);
    ck_assert_int_eq(link_hear(l, line, false, &why), MIBA_OK);
    ck_assert_str_eq(line, "done");
    l->heard -= UINT64_C(1000000000); /* a second ago */
    ck_assert(!link_lives(l));
    close(ends[1]);
    ck_assert(link_stirs(l));
    link_end(l);
    free(l);
}
END_TEST

/* Between its parts a peer is gone when its end is closed, or silent after heartbeats; also heartbeats that came while
 * an answer was awaited are signs of life. */
START_TEST(peers_are_watched)
{
    struct link *l = calloc(1, sizeof *l);
    struct silence quiet = {0};
    char line[LINE_MOST];
    struct miba_why why;
    int ends[2];

    ck_assert_ptr_nonnull(l);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    link_start(l, ends[0], 1);
    fake_ns = SECOND;
    for (int i = 0; i < 20; i++, fake_ns += SECOND / 4) /* one without heartbeats is not missed */
        ck_assert_int_eq(link_watch(l, &quiet, &why), MIBA_OK);
    for (int i = 0; i < 20; i++, fake_ns += SECOND / 4) {
        ck_assert_int_eq(write(ends[1], "\ndone\n", 6), 6);
        ck_assert_int_eq(link_hear(l, line, false, &why), MIBA_OK);
        ck_assert_int_eq(link_watch(l, &quiet, &why), MIBA_OK);
    }
    for (int i = 0; i < 20; i++, fake_ns += SECOND / 4) {
        ck_assert_int_eq(write(ends[1], "\n", 1), 1);
        ck_assert_int_eq(link_watch(l, &quiet, &why), MIBA_OK);
    }
    for (int i = 0; i < 3; i++, fake_ns += SECOND / 4)
        ck_assert_int_eq(link_watch(l, &quiet, &why), MIBA_OK);
    fake_ns += SECOND / 4;
    ck_assert_int_eq(link_watch(l, &quiet, &why), MIBA_LOST);
    ck_assert_msg(strstr(why.text, "no sign of life for 1 s") != NULL, "%s", why.text);
    ck_assert_int_eq(write(ends[1], "what", 4), 4);
    close(ends[1]);
    ck_assert_int_eq(link_watch(l, &quiet, &why), MIBA_LOST);
    ck_assert_msg(strstr(why.text, "it has ended") != NULL, "%s", why.text);
    fake_ns = 0;
    link_end(l);
    free(l);
}
END_TEST

/* A host whose addresses do not answer is given up within the time-out, and the last one that does is found. */
START_TEST(addresses_share_the_timeout)
{
    struct miba_why why;

    answers = -1;
    n_waits = 0;
    fake_ns = SECOND;
    ck_assert_int_eq(link_connect("host", "1", 4, &why), -1);
    ck_assert_msg(strstr(why.text, "no server at host port 1: Connection timed out") != NULL, "%s", why.text);
    ck_assert_int_eq(n_waits, ADDRESSES);
    ck_assert_uint_le(fake_ns, 5 * SECOND);
    ck_assert_uint_ge(fake_ns, 4 * SECOND);
    answers = ADDRESSES - 1;
    n_waits = 0;
    const int fd = link_connect("host", "1", 4, &why);
    ck_assert_int_ge(fd, 0);
    close(fd);
    fake_ns = 0;
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("strata-miba link");
    TCase *c = tcase_create("link");

    tcase_add_test(c, silence_is_what_was_looked_at);
    tcase_add_test(c, who_was_stopped_has_not_lost_its_peer);
    tcase_add_test(c, who_hears_nothing_ends);
    tcase_add_test(c, heartbeats_are_signs_of_life);
    tcase_add_test(c, heartbeats_end_no_loop);
    tcase_add_test(c, peers_are_watched);
    tcase_add_test(c, addresses_share_the_timeout);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(suite());

    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#else

int main(void)
{
    puts("SKIP: built without libibverbs (Debian: libibverbs-dev)");
    return 77;
}

#endif

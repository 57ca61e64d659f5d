/* The engine that all processes of a device have together, and what the environment may not say. A program of the verbs
 * suite, for softhca alone; costs_test.sh runs it. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/require.h"
#include "counts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define MESSAGE 'm'
#define END     'e'

/* A process with connected queue pairs of its own, which does what it is told: a byte for each message, another one for
 * its end. */
struct side {
    pid_t pid;
    int commands, answers;
};

static void serve(const char *costs, int commands, int answers)
{
    struct pair p;
    char byte;

    costs_set(costs);
    PAIR(&p, .type = IBV_QPT_RC);
    for (uint32_t i = 1; read(commands, &byte, 1) == 1 && byte == MESSAGE; i++) {
        pair_exchange(&p, i);
        REQUIRE_EQ(write(answers, &byte, 1), 1);
    }
    pair_close(&p);
    _exit(0);
}

static struct side side_start(const char *costs)
{
    struct side s = {0};
    int down[2], up[2];

    REQUIRE(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0);
    s.pid = fork();
    if (s.pid == 0) {
        close(down[1]);
        close(up[0]);
        serve(costs, down[0], up[1]);
    }
    REQUIRE(s.pid > 0);
    close(down[0]);
    close(up[1]);
    s.commands = down[1];
    s.answers = up[0];
    return s;
}

static void side_tell(const struct side *s)
{
    REQUIRE_EQ(write(s->commands, &(const char){MESSAGE}, 1), 1);
}

static void side_await(const struct side *s)
{
    char byte;

    REQUIRE_EQ(read(s->answers, &byte, 1), 1);
}

static void side_end(const struct side *s, int signal)
{
    int status;

    if (signal)
        kill(s->pid, signal);
    else /* not by closing: the other sides have it, too */
        REQUIRE_EQ(write(s->commands, &(const char){END}, 1), 1);
    close(s->commands);
    REQUIRE_EQ(waitpid(s->pid, &status, 0), s->pid);
    REQUIRE(signal ? WIFSIGNALED(status) : status == 0);
    close(s->answers);
}

/* What several processes do at once takes as long as one after the other. */
static void one_at_a_time(void)
{
    enum { SIDES = 3, MESSAGES = 20 };
    struct side s[SIDES];

    for (int i = 0; i < SIDES; i++) {
        s[i] = side_start("engine=1,packet=2ms");
        side_tell(&s[i]);
        side_await(&s[i]);
    }
    const double begin = now();
    for (int k = 0; k < MESSAGES; k++)
        for (int i = 0; i < SIDES; i++)
            side_tell(&s[i]);
    for (int k = 0; k < MESSAGES; k++)
        for (int i = 0; i < SIDES; i++)
            side_await(&s[i]);
    const double took = now() - begin, least = SIDES * MESSAGES * 0.002 * 0.99;
    for (int i = 0; i < SIDES; i++)
        side_end(&s[i], 0);
    REQUIRE_MSG(took >= least, "%.6f s instead of %.6f", took, least);
}

static uint32_t holder(void)
{
    char *segment = own_segment(PROT_READ);
    const uint32_t index = ((const struct hca_header *)(const void *)segment)->serial[0].lock;

    munmap(segment, HCA_SIZE);
    return index;
}

/* Who is killed with the engine in its hands takes it along for a moment only. */
static void holder_is_killed(void)
{
    struct pair p;
    struct side s = side_start("engine=1,packet=990ms");

    costs_set("engine=1");
    PAIR(&p, .type = IBV_QPT_RC);
    struct counts c = counts_now();
    pair_exchange(&p, 1); /* so that the engine is with us */
    COUNTED(&c, {HCA_COST_ENGINE, 1});
    side_tell(&s);
    for (double end = now() + time_limit(); holder() == 0;)
        REQUIRE_MSG(now() < end, "nobody has the engine");
    side_end(&s, SIGKILL);
    pair_exchange(&p, 2);
    pair_exchange(&p, 3);
    COUNTED(&c, {HCA_COST_ENGINE, 2});
    REQUIRE_EQ(holder(), 0);
    pair_close(&p);
}

/* The process that the engine is with ends: another one has it then, and all find it. */
static void host_ends(void)
{
    static const int signals[] = {SIGKILL, 0};
    struct pair p;
    struct side s[3];

    for (int i = 0; i < 3; i++)
        s[i] = side_start("engine=1");
    for (int i = 0; i < 3; i++) {
        side_tell(&s[i]);
        side_await(&s[i]);
    }
    costs_set("engine=1,switch=10ns");
    PAIR(&p, .type = IBV_QPT_RC);
    struct counts c = counts_now();
    pair_exchange(&p, 1);
    COUNTED(&c, {HCA_COST_ENGINE, 1});
    for (int i = 0; i < 2; i++) {
        side_end(&s[i], signals[i]);
        for (uint32_t k = 0; k < 3; k++) {
            side_tell(&s[2]);
            pair_exchange(&p, 2 + k);
            side_await(&s[2]);
        }
        COUNTED(&c, {HCA_COST_ENGINE, 3});
    }
    side_end(&s[2], 0);
    /* Nobody else is left, so it is with us. */
    pair_exchange(&p, 9);
    COUNTED(&c, {HCA_COST_ENGINE, 1});
    char *segment = own_segment(PROT_READ);
    REQUIRE_EQ(((struct hca_header *)(void *)segment)->serial[0].qpn, p.a.qp->qp_num);
    munmap(segment, HCA_SIZE);
    pair_close(&p);
}

/* A word that is no process's, or a living one's that does not let go: bounded, and the message goes. */
static void lock_is_scribbled(void)
{
    struct pair p;

    costs_set("engine=1");
    PAIR(&p, .type = IBV_QPT_RC);
    pair_exchange(&p, 1);
    char *segment = own_segment(PROT_READ | PROT_WRITE);
    struct hca_header *h = (struct hca_header *)(void *)segment;
    atomic_store(&h->serial[0].lock, 0xffffffffu);
    pair_exchange(&p, 2);
    atomic_store(&h->serial[0].lock, h->process);
    pair_exchange(&p, 3);
    pair_exchange(&p, 4);
    atomic_store(&h->serial[0].lock, 0);
    munmap(segment, HCA_SIZE);
    pair_close(&p);
}

/* Busy by the clock of another process: its message is waited for, and no time that is none. */
static void busy_by_another_clock(void)
{
    struct pair p;

    costs_set("engine=1");
    PAIR(&p, .type = IBV_QPT_RC);
    pair_exchange(&p, 1);
    char *segment = own_segment(PROT_READ | PROT_WRITE);
    _Atomic(uint64_t) *free_at = &((struct hca_header *)(void *)segment)->serial[0].free_at;
    const double begin = now(), after = begin + 0.02;
    atomic_store(free_at, (uint64_t)(1e9 * after));
    pair_exchange(&p, 2);
    REQUIRE_MSG(now() >= after - 1e-6, "after %.6f s", now() - begin);
    /* An hour would end the test. */
    atomic_store(free_at, (uint64_t)(1e9 * (now() + 3600)));
    pair_exchange(&p, 3);
    atomic_store(free_at, UINT64_MAX);
    pair_exchange(&p, 4);
    munmap(segment, HCA_SIZE);
    pair_close(&p);
}

/* No device is opened, and the message says what is wrong. */
static void refused(void)
{
    static const struct {
        const char *name, *value, *said;
    } bad[] = {
        {"SOFTHCA_COST", "pages=1ns", "pages=1ns: no such cost; there are: post, reg, page, dereg"},
        {"SOFTHCA_COST", "=1ns", "no such cost"},
        {"SOFTHCA_COST", "reg=1us,", "no such cost"},
        {"SOFTHCA_COST", "reg", "reg: expected KEY=TIME"},
        {"SOFTHCA_COST", "reg=", "reg=: expected a number and its unit: ps, ns, us or ms"},
        {"SOFTHCA_COST", "reg=5", "reg=5: expected a number and its unit"},
        {"SOFTHCA_COST", "reg=5s", "reg=5s: expected a number and its unit"},
        {"SOFTHCA_COST", "reg=-5ns", "reg=-5ns: expected a number and its unit"},
        {"SOFTHCA_COST", "reg=1.ns", "reg=1.ns: expected a number and its unit"},
        {"SOFTHCA_COST", "reg=0x10ns", "reg=0x10ns: expected a number and its unit"},
        {"SOFTHCA_COST", "reg=1us ", "reg=1us : expected a number and its unit"},
        {"SOFTHCA_COST", "packet=1ns,reg=1001ms", "reg=1001ms: more than 1000ms"},
        {"SOFTHCA_COST", "reg=99999999999999999999ms", "too many digits"},
        {"SOFTHCA_COST", "page=1.1ms", "page=1.1ms: more than 1ms"},
        {"SOFTHCA_COST", "byte=1ms", "byte=1ms: more than 1us"},
        {"SOFTHCA_COST", "reg=1ns,reg=1ns", "reg=1ns: given twice"},
        {"SOFTHCA_COST", "post_recv=1ns,post=1ns", "post=1ns: given twice"},
        {"SOFTHCA_COST", "engine=2", "engine=2: expected engine=1"},
        {"SOFTHCA_COST_CACHE", "0", "SOFTHCA_COST_CACHE=0: expected a number from 1 to"},
        {"SOFTHCA_COST_CACHE", "1k", "SOFTHCA_COST_CACHE=1k: expected a number from 1 to"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024] = "";
        int p[2], status;
        REQUIRE_OK(pipe(p));
        const pid_t pid = fork();
        if (pid == 0) {
            struct ibv_device **list = ibv_get_device_list(NULL);
            setenv(bad[i].name, bad[i].value, 1);
            dup2(p[1], 2);
            errno = 0;
            _exit(list && list[0] && !ibv_open_device(list[0]) && errno == EINVAL ? 0 : 1);
        }
        close(p[1]);
        size_t n = 0;
        for (ssize_t more; (more = read(p[0], text + n, sizeof text - 1 - n)) > 0;)
            n += (size_t)more;
        close(p[0]);
        REQUIRE_EQ(waitpid(pid, &status, 0), pid);
        REQUIRE_MSG(status == 0, "%s=%s: not refused with EINVAL", bad[i].name, bad[i].value);
        REQUIRE_MSG(strstr(text, bad[i].said) && strstr(text, "softhca: "), "%s=%s: said '%s', not '%s'", bad[i].name,
                    bad[i].value, text, bad[i].said);
    }
}

/* softhca-stat shows what was counted, each cost and the sum. */
static void shown(void)
{
    char line[256], expected[3][128];
    struct pair p;
    int found = 0;

    costs_set("packet=1.5us,byte=250ps,cold=0ns");
    PAIR(&p, .type = IBV_QPT_RC);
    for (uint32_t i = 0; i < 3; i++)
        pair_exchange(&p, i);
    snprintf(expected[0], sizeof *expected, "  %d: cost packet: 3 times 1500.000 ns, 4500 ns\n", (int)getpid());
    snprintf(expected[1], sizeof *expected, "  %d: cost byte: 2331 times 0.250 ns, 582 ns\n", (int)getpid());
    snprintf(expected[2], sizeof *expected, "  %d: cost cold: 1 times 0.000 ns, 0 ns\n", (int)getpid());
    FILE *out = popen("LD_PRELOAD= softhca-stat", "r");
    REQUIRE(out != NULL);
    while (fgets(line, sizeof line, out)) {
        for (int i = 0; i < 3; i++)
            found += strcmp(line, expected[i]) == 0;
        REQUIRE_MSG(!strstr(line, "cost reg") && !strstr(line, "cost poll"), "shown, and not set: %s", line);
    }
    REQUIRE_OK(pclose(out));
    REQUIRE_EQ(found, 3);
    pair_close(&p);
}

static const struct verbs_case cases[] = {
    CASE(one_at_a_time),         CASE(holder_is_killed), CASE(host_ends), CASE(lock_is_scribbled),
    CASE(busy_by_another_clock), CASE(refused),          CASE(shown),
};
VERBS_MAIN("engine", cases)

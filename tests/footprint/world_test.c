/* Cost follows use: a context in a simulated world of 10^6 ranks costs less than 8 bytes a rank, and a peer costs
 * nothing before the first message to it. Memory is asserted; time is printed. */
#include <check.h>
#include <malloc.h>
#include <time.h>
#include "support/suite.h"
#include "framework/base/context.h"
#include "support/rollup.h"
#include "support/run_suite.h"

enum { MILLION = 1000000 };

static size_t resident(void)
{
    long kb = rollup_kb("Rss:");
    CHECK(kb > 0);
    return (size_t)kb * 1024;
}

static size_t allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

struct cost {
    size_t resident, allocated;
    double ms;
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct cost cost_of(int n, const char *settings)
{
    struct tw_options o = {.n = n, .present = 1, .ranks_per_host = 1, .settings = settings};
    struct tw_world *w = tw_create(&o);
    struct cost c;
    strata_t *s = NULL;
    char err[500] = "";
    size_t rss = resident(), heap = allocated();
    double t0 = now_ms();
    int rc = tw_init(w, 0, &s, err, sizeof err);
    CHECK_MSG(rc == STRATA_OK, "strata_init: %s", err);
    c.ms = now_ms() - t0;
    char x[8] = "1234567", y[8] = "";
    CHECK_OK(strata_sendrecv(strata_world(s), x, 8, 0, 1, y, 8, 0, 1, NULL)); /* it works */
    c.resident = resident() - rss;
    c.allocated = allocated() - heap;
    CHECK_OK(strata_finalize(s));
    tw_destroy(w);
    return c;
}

START_TEST(million_ranks)
{
    static const char *const settings[] = {NULL, "btl=shuffle,self"};
    for (int i = 0; i < 2; i++) {
        cost_of(2, settings[i]); /* what is paid once for a process */
        struct cost small = cost_of(2, settings[i]), big = cost_of(MILLION, settings[i]);
        double heap = ((double)big.allocated - (double)small.allocated) / MILLION;
        double rss = ((double)big.resident - (double)small.resident) / MILLION;
        printf("10^6 ranks, %s: %.3f bytes a rank allocated, %.3f resident, started in %.2f ms\n",
               settings[i] ? settings[i] : "default transports", heap, rss, big.ms);
        if (test_sanitized())
            continue;
        CHECK_MSG(heap < 8, "%.2f bytes a rank are allocated", heap);
        CHECK_MSG(rss < 8, "%.2f bytes a rank are resident", rss);
    }
}
END_TEST

/* Contexts come and go: nothing stays. */
START_TEST(nothing_stays)
{
    struct cost once = cost_of(16, NULL);
    for (int i = 0; i < 100; i++) /* what malloc keeps for threads grows at first */
        cost_of(16, NULL);
    size_t before = allocated();
    for (int i = 0; i < 100; i++)
        cost_of(16, NULL);
    size_t after = allocated();
    printf("one context: %zu bytes allocated, %zu resident; after 100 more: %zd bytes\n", once.allocated, once.resident,
           (ssize_t)(after - before));
    if (!test_sanitized())
        CHECK_MSG(after < before + 16384, "%zd bytes stay after 100 contexts", (ssize_t)(after - before));
}
END_TEST

/* A peer that has been spoken to: what the components say. */
enum { PEERS = 33 };

struct sums {
    size_t all, peers;
};

static void add_line(void *arg, const strata_mem_line_t *line)
{
    struct sums *x = arg;
    x->all += line->bytes;
    if (!strcmp(line->category, "peers"))
        x->peers += line->bytes;
}

static void speak(struct tw_rank *r)
{
    struct sums before = {0, 0}, after = {0, 0};
    CHECK_OK(strata_mem_report(r->s, add_line, &before));
    tw_barrier(r);
    if (r->rank == 0) {
        for (int p = 1; p < PEERS; p++)
            suite_signal(r->comm, p, 1);
        for (int p = 1; p < PEERS; p++)
            suite_await(r->comm, p, 2);
        CHECK_OK(strata_mem_report(r->s, add_line, &after));
        double per = (double)(after.peers - before.peers) / (PEERS - 1);
        printf("a peer: %.0f bytes reported (%s); all in all %zu\n", per, (const char *)r->arg, after.all);
        CHECK_MSG(per < 1024, "a peer costs %.0f bytes", per);
        CHECK_MSG(per > 0, "peers are not accounted for");
    } else {
        suite_await(r->comm, 0, 1);
        suite_signal(r->comm, 0, 2);
    }
    tw_quiesce(r);
}

START_TEST(contacted_peer)
{
    static char *const settings[] = {"btl=shuffle,self btl_shuffle_again_percent=0", "btl=sm,self"};
    tw_run(&(struct tw_options){.n = PEERS, .settings = settings[_i]}, speak, settings[_i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("footprint");
    TCase *tc = tcase_create("world");
    tcase_add_test(tc, million_ranks);
    tcase_add_test(tc, nothing_stays);
    tcase_add_loop_test(tc, contacted_peer, 0, 2);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* Two contexts of one process, below the PML: rank 0 sends long fragments and short ones, gives the connection up and
 * closes its transport, as the end of a program does, though without a fence before. All that was sent arrives, and
 * rank 1, which goes on, does not take rank 0 for failed. For tests/openib, with faults: what is lost is sent again
 * later. */
#include <time.h>
#include "support/btl_suite.h"
#include "support/watchdog.h"

enum { LONG = 4, SHORT = 20, LONG_BYTES = 20000 };

static void count(void *arg, const struct st_frag *f)
{
    ((int *)arg)[f->len == LONG_BYTES]++;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void leave(struct btl_under_test *u)
{
    static const char data[LONG_BYTES];
    uint32_t hdr = 1;
    double begin;

    for (int i = 0; i < SHORT; i++)
        btl_send_all(u, 1, &hdr, sizeof hdr, data, 8);
    for (int i = 0; i < LONG; i++)
        btl_send_all(u, 1, &hdr, sizeof hdr, data, LONG_BYTES);
    u->t->ops->disconnect(u->ep[1]);
    begin = now();
    u->t->ops->close(u->t);
    printf("closing took %.3f s\n", now() - begin);
}

static void stay(struct btl_under_test *u, const int *got)
{
    double end = now() + 900;

    while (got[0] < SHORT || got[1] < LONG) {
        btl_poll(u);
        CHECK_MSG(now() < end, "%d short and %d long messages have come of %d and %d", got[0], got[1], SHORT, LONG);
    }
    for (end = now() + 2; now() < end;)
        btl_poll(u);
    CHECK(!tw_was_told(u->r, 0));
    CHECK_EQ(got[0], SHORT);
    CHECK_EQ(got[1], LONG);
}

static void body(struct tw_rank *r)
{
    struct btl_under_test u = {.r = r};
    int got[2] = {0}, word = 1;

    for (size_t i = 0; i < r->s->n_btls && !u.t; i++)
        if (!strcmp(r->s->btls[i]->component->name, "openib"))
            u.t = r->s->btls[i];
    CHECK(u.t);
    for (int to = 0; to < 2; to++) /* both ends have a connection, and the PML has a peer that may fail */
        if (r->rank == to)
            CHECK_OK(strata_recv(r->comm, &word, sizeof word, 1 - to, 1, STRATA_STATUS_IGNORE));
        else
            CHECK_OK(strata_send(r->comm, &word, sizeof word, to, 1));
    CHECK_OK(u.t->ops->connect(u.t, 1 - r->rank, &u.ep[1 - r->rank]));
    btl_handler(&u, count, got);
    if (r->rank == 0)
        leave(&u);
    else
        stay(&u, got);
    tw_barrier(r);
}

int main(void)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);

    tw_run(&(struct tw_options){.n = 2,
                                .no_finalize = true, /* rank 0's context has lost its transport */
                                .settings = "btl=openib,self btl_openib_keepalive_ms=200 btl_openib_timeout=13"},
           body, NULL);
    watchdog_stop(dog);
    puts("all has come");
    return 0;
}

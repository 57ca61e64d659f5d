/* A receiver of puts with notice kills itself, for tests/conformance and tests/openib: `notify_death LENGTH`, three
 * ranks, under strata-run --keep-going or mpirun --enable-recovery. Ranks 1 and 2 put LENGTH bytes at a time into rank
 * 0's memory, several at once, and notices without data; rank 0 dies when it has seen some of them. Each operation ends
 * once: with success or STRATA_ERR_PEER. Each survivor prints "rank R: N operations ended with an error, of M", M
 * having been under way when it was told, and "rank R goes on" after a message from the other. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "support/notify_ends.h"
#include "support/suite.h"
#include "support/watchdog.h"

enum { VICTIM = 0, WINDOW = 64, DIES_AT = 500, BOUND_S = 900 };

static void look(struct notify_receiver *in, int from, uint32_t slot, uint32_t turn)
{
    (void)slot, (void)turn;
    if (atomic_load(&in->got[from]) >= DIES_AT)
        raise(SIGKILL);
}

static void victim(struct tw_rank *r)
{
    static struct notify_receiver in = {.look = look};
    notify_join(r, &in);
    notify_expose(r, &in);
    for (int i = 1; i < r->n; i++)
        suite_await(r->comm, i, 3);
    for (int i = 1; i < r->n; i++)
        suite_signal(r->comm, i, 3);
    for (;;)
        suite_spin(r->s, 1);
}

static void spin_until(struct tw_rank *r, time_t end)
{
    suite_spin(r->s, 1);
    CHECK_MSG(time(NULL) < end, "rank %d waits for ever for news of a dead receiver", r->rank);
}

/* All but one of eight have data. A transport may report the failure first by an operation that it does not begin. */
static void put_until_told(struct tw_rank *r, struct notify_sender *s, uint32_t len, time_t end)
{
    for (bool told = false; !told; spin_until(r, end)) {
        for (uint32_t i = 0; i < WINDOW && s->failed == 0; i++) {
            bool data = i % 8 != 0;
            if (s->op[i].under_way)
                continue;
            told |= notify_put(s, &s->op[i], i % NOTIFY_SLOTS, 0, data ? len : 0) == STRATA_ERR_PEER && !data;
        }
        told |= s->failed > 0;
    }
}

static void survivor(struct tw_rank *r, uint32_t len)
{
    struct notify_receiver in = {0};
    struct notify_sender s;
    char c[8] = "";
    time_t end = time(NULL) + BOUND_S;
    notify_join(r, &in);
    notify_open(r, &s, WINDOW);
    suite_signal(r->comm, VICTIM, 3);
    suite_await(r->comm, VICTIM, 3);
    put_until_told(r, &s, len, end);
    while (s.under_way)
        spin_until(r, end);
    printf("rank %d: %u operations ended with an error\n", r->rank, s.failed);
    CHECK_RC(notify_put(&s, &s.op[0], 0, 0, len), STRATA_ERR_PEER);
    CHECK_RC(notify_put(&s, &s.op[0], 0, 0, 0), STRATA_ERR_PEER);
    CHECK_RC(strata_ssend(r->comm, c, sizeof c, VICTIM, 2), STRATA_ERR_PEER);
    for (int i = 1; i < r->n; i++)
        if (i == r->rank)
            suite_signal(r->comm, 3 - r->rank, 3);
        else
            suite_await(r->comm, 3 - r->rank, 3);
    printf("rank %d goes on\n", r->rank);
    fflush(stdout);
    notify_close(&s);
    notify_conceal(r, &in);
}

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    struct tw_rank r = {0};

    CHECK_MSG(argc == 2, "usage: notify_death LENGTH");
    CHECK_OK(strata_init(NULL, &r.s));
    r.comm = strata_world(r.s);
    r.rank = strata_rank(r.s);
    r.n = strata_size(r.s);
    CHECK_EQ(r.n, NOTIFY_RANKS);
    uint32_t len = (uint32_t)strtoul(argv[1], NULL, 10);
    CHECK(len > 0 && len <= NOTIFY_SLOT);
    if (r.rank == VICTIM)
        victim(&r);
    survivor(&r, len);
    (void)strata_finalize(r.s); /* may say that not everybody took part; must return */
    watchdog_stop(dog);
    return 0;
}

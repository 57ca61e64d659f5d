/* Which rings of eager RDMA a round looks at, in a module without peers that send. */
/* one thread */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "module.h"
#include "support/run_suite.h"

enum { MOST = 16, ROUNDS = MOST };

static struct ib_module m;
static struct ib_params params;
static struct ib_peer peer;
static char slot[MOST][IB_LINE] __attribute__((aligned(64)));

static void begin(int order, uint32_t lively, uint32_t quiet)
{
    struct ib_eager *e = &m.eager;

    memset(slot, 0, sizeof slot);
    memset(&m, 0, sizeof m);
    params = (struct ib_params){.eager_rdma_order = order};
    peer = (struct ib_peer){.ep = {.btl = &m.btl}, .q[IB_HIGH] = {.receives = 1}};
    m.dev.par = &params;
    m.poll.until = 1u << 30;
    e->rings = aligned_alloc(IB_LINE, (lively + quiet) * sizeof *e->rings);
    e->polled = calloc(lively + quiet, sizeof(struct ib_ring_in *));
    ck_assert(e->rings && e->polled);
    e->n_lively = lively;
    e->n_polled = lively + quiet;
    for (uint32_t i = 0; i < e->n_polled; i++) {
        e->rings[i] = (struct ib_ring_in){.flag = &slot[i][IB_LINE - 1],
                                          .bottom = &slot[i][IB_LINE - 1] - 4 * IB_LINE,
                                          .size = IB_LINE,
                                          .window = 2,
                                          .order = {.n = 4},
                                          .expect = ib_lap_flag(0),
                                          .peer = &peer,
                                          .quiet = i >= lively};
        e->polled[i] = &e->rings[i];
    }
    e->none = (struct ib_ring_in){.flag = (const char *)(&e->nothing + 1) - 1, .expect = ib_lap_flag(0)};
    e->first = order == IB_POLL_CIRCULAR ? &e->none : e->polled[0];
}

static void end(void)
{
    free(m.eager.rings);
    free(m.eager.polled);
}

/* A message whose turn has not come: a look finds it, and does not take it. */
static void arrive(const struct ib_ring_in *r)
{
    uint64_t word = ib_footer_word(r->expect, peer.q[IB_HIGH].received + 1, 0);

    memcpy((char *)(uintptr_t)r->flag + 1 - sizeof word, &word, sizeof word);
}

static const struct {
    uint32_t lively, quiet;
} cases[] = {{2, 3}, {8, 8}, {2, 1}, {3, 4}, {1, 5}, {8, 5}};
static const int orders[] = {IB_POLL_CIRCULAR, IB_POLL_SEQUENTIAL, IB_POLL_PRIORITISED};

/* Two in each round, in turn, whichever round it is and whatever ring it is. */
START_TEST(quiet_rings_are_looked_at_in_turn)
{
    uint32_t lively = cases[_i].lively, quiet = cases[_i].quiet;

    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
        for (uint32_t before = 0; before < ROUNDS; before++)
            for (uint32_t i = lively; i < lively + quiet; i++) {
                begin(orders[o], lively, quiet);
                for (uint32_t k = 0; k < before; k++)
                    (void)ib_progress_eager(&m.btl);
                arrive(&m.eager.rings[i]);
                for (uint32_t k = 0; k < (quiet + 1) / 2; k++)
                    (void)ib_progress_eager(&m.btl);
                ck_assert_msg(!m.eager.rings[i].quiet, "order %d: quiet ring %u is not found %u rounds later",
                              orders[o], i, (quiet + 1) / 2);
                end();
            }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("polling");
    TCase *t = tcase_create("polling");

    tcase_add_loop_test(t, quiet_rings_are_looked_at_in_turn, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(s, t);
    return run_suite(s);
}

/* How often low priority is looked at, whatever calls for looks: what may overtake its messages rests on that. */
/* one thread */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "data/credits.h"
#include "module.h"
#include "support/run_suite.h"

enum { POLLS = 100000 };

static struct ibv_cq cq[IB_PRIORITIES];
static uint32_t unlooked, most; /* looks at high priority since the last one at low priority */
static uint32_t seed;

static uint32_t any(uint32_t n)
{
    return (seed = seed * 1664525 + 1013904223) / 7 % n;
}

static int find_nothing(struct ibv_cq *from, int n, struct ibv_wc *wc)
{
    (void)n, (void)wc;
    unlooked = from == &cq[IB_LOW] ? 0 : unlooked + 1;
    if (unlooked > most)
        most = unlooked;
    return 0;
}

static void apply_nothing(struct st_rcache *cache)
{
    (void)cache;
}

/* Chances, each 1 of so many, 0: never. */
static const struct {
    uint32_t attend; /* something calls for a look, before a poll */
    uint32_t again;  /* a look calls for another one in the next poll */
} cases[] = {{0, 0}, {1, 0}, {8, 0}, {31, 0}, {64, 0}, {0, 2}, {30, 2}, {16, 8}, {2, 2}, {3, 1}};

START_TEST(looks_are_close_enough)
{
    static const struct st_rcache_ops ops = {.apply = apply_nothing};
    struct st_rcache cache = {.ops = &ops};
    struct ib_params params = {0};
    struct ibv_context device = {.ops.poll_cq = find_nothing, .async_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    struct ib_module *m = calloc(1, sizeof *m);

    ck_assert(m && device.async_fd >= 0);
    m->dev.par = &params;
    m->dev.verbs = &device;
    m->registrar.cache = &cache;
    m->oob.wait_fd = -1;
    m->qps.n_peers = 1;
    m->poll.hot = true;
    m->poll.until = 1;
    st_list_init(&m->conns.pending);
    st_list_init(&m->rdma.waiting);
    for (int i = 0; i < IB_PRIORITIES; i++) {
        cq[i].context = &device;
        m->q[i].cq = &cq[i];
    }
    unlooked = most = 0, seed = (uint32_t)_i;
    for (int i = 0; i < POLLS; i++) {
        uint32_t until;

        if (cases[_i].attend && any(cases[_i].attend) == 0)
            ib_attend(&m->poll);
        until = m->poll.until;
        (void)ib_progress(&m->btl);
        if (until == 1 && cases[_i].again && any(cases[_i].again) == 0) {
            m->poll.again = true;
            ib_attend(&m->poll);
        }
    }
    ck_assert_msg(most <= IB_UNLOOKED, "%u polls without a look at low priority", most);
    close(device.async_fd);
    free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("looks");
    TCase *t = tcase_create("looks");

    tcase_add_loop_test(t, looks_are_close_enough, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(s, t);
    return run_suite(s);
}

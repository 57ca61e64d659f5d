/* Single copy: both ways, alone and together, with a helper that never comes, with one that dies, with bad addresses.
 */
#include <signal.h>
#include <sys/wait.h>
#include <strata/sdk/btl_rdma.h>
#include "rig.h"
#include "single_copy.h"
#include "support/let_run.h"
#include "support/run_suite.h"

#define LENGTH (900u * 1024 + 13)

struct waiting {
    struct st_btl_op op;
    int done, rc;
};
static void on_done(struct st_btl_op *op, int rc)
{
    struct waiting *w = (struct waiting *)(void *)op;
    w->done++;
    w->rc = rc;
}

struct pair {
    struct rig_board *board;
    struct rig_rank *r[2];
    struct st_btl_endpoint *ep[2];
    uint8_t *a, *b;
    struct waiting w;
};

static void pair_open(struct pair *p, int mode)
{
    p->board = rig_board(2);
    p->a = malloc(LENGTH);
    p->b = malloc(LENGTH);
    for (int i = 0; i < 2; i++) {
        p->r[i] = malloc(sizeof *p->r[i]);
        rig_init(p->r[i], p->board, i);
        p->r[i]->par.single_copy = mode;
        rig_open(p->r[i]);
    }
    for (int i = 0; i < 2; i++)
        p->ep[i] = rig_connect(p->r[i], 1 - i);
    for (uint32_t i = 0; i < LENGTH; i++) {
        p->a[i] = (uint8_t)(i * 3);
        p->b[i] = (uint8_t) ~(i * 3);
    }
    p->w = (struct waiting){.op.done = on_done};
}
static void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        rig_close(p->r[i]);
        free(p->r[i]);
    }
    free(p->a);
    free(p->b);
    munmap(p->board, sizeof *p->board);
}
static uint64_t address(const void *x)
{
    return (uint64_t)(uintptr_t)x;
}
/* Drives the initiator, and the other rank when `help`. */
static void drive(struct pair *p, bool help)
{
    for (int i = 0; i < 100000 && !p->w.done; i++) {
        p->r[0]->btl->ops->progress(p->r[0]->btl);
        if (help)
            p->r[1]->btl->ops->progress(p->r[1]->btl);
    }
    ck_assert_int_eq(p->w.done, 1);
}

static const struct {
    int mode;
    bool help;
} ways[] = {
    {SM_COPY_ONE_SIDED, false}, {SM_COPY_COOPERATIVE, true}, {SM_COPY_COOPERATIVE, false}, {SM_COPY_AUTO, true}};

START_TEST(get_and_put)
{
    struct pair p;
    pair_open(&p, ways[_i].mode);
    const struct st_btl_rdma *rdma = p.r[0]->btl->rdma;
    ck_assert(p.ep[0]->caps & ST_BTL_GET);
    ck_assert_int_eq(rdma->get(p.ep[0], p.a, address(p.b), NULL, LENGTH, NULL, &p.w.op), STRATA_OK);
    drive(&p, ways[_i].help);
    ck_assert_int_eq(p.w.rc, STRATA_OK);
    ck_assert_int_eq(memcmp(p.a, p.b, LENGTH), 0);
    for (uint32_t i = 0; i < LENGTH; i++)
        p.a[i] = (uint8_t)(i * 5);
    p.w.done = 0;
    ck_assert_int_eq(rdma->put(p.ep[0], p.a, address(p.b), NULL, LENGTH, NULL, &p.w.op), STRATA_OK);
    drive(&p, ways[_i].help);
    ck_assert_int_eq(p.w.rc, STRATA_OK);
    ck_assert_int_eq(memcmp(p.a, p.b, LENGTH), 0);
    if (ways[_i].mode != SM_COPY_ONE_SIDED)
        ck_assert_uint_eq(sm_module(p.r[1]->btl)->count.helped > 0, ways[_i].help);
    /* Short ones finish inside the call. */
    p.a[0] = (uint8_t)~p.b[0];
    ck_assert_int_eq(rdma->get(p.ep[0], p.a, address(p.b), NULL, 100, NULL, &p.w.op), 1);
    ck_assert_int_eq(p.a[0], p.b[0]);
    pair_close(&p);
}
END_TEST

/* On a busy machine nobody is called for help. */
START_TEST(alone_on_a_busy_machine)
{
    struct pair p;
    struct st_worker w = {.poll = NULL};
    pair_open(&p, SM_COPY_COOPERATIVE);
    struct sm_module *m = sm_module(p.r[0]->btl);
    p.r[0]->btl->worker = &w;
    for (int busy = 1; busy >= 0; busy--) {
        uint64_t before = m->count.coop;
        atomic_store(&w.busy, busy == 1);
        p.w.done = 0;
        ck_assert_int_eq(p.r[0]->btl->rdma->get(p.ep[0], p.a, address(p.b), NULL, LENGTH, NULL, &p.w.op), STRATA_OK);
        drive(&p, true);
        ck_assert_int_eq(p.w.rc, STRATA_OK);
        ck_assert_int_eq(memcmp(p.a, p.b, LENGTH), 0);
        ck_assert_uint_eq(m->count.coop - before, busy ? 0 : 1);
    }
    p.r[0]->btl->worker = NULL;
    pair_close(&p);
}
END_TEST

START_TEST(late_helper_does_no_harm)
{
    struct pair p;
    pair_open(&p, SM_COPY_COOPERATIVE);
    const struct st_btl_rdma *rdma = p.r[0]->btl->rdma;
    ck_assert_int_eq(rdma->get(p.ep[0], p.a, address(p.b), NULL, LENGTH, NULL, &p.w.op), STRATA_OK);
    drive(&p, false);
    memset(p.a, 1, LENGTH);
    for (int i = 0; i < 100; i++) /* the call for help is read now: too late to claim anything */
        p.r[1]->btl->ops->progress(p.r[1]->btl);
    uint32_t touched = 0;
    for (uint32_t i = 0; i < LENGTH; i++)
        touched += p.a[i] != 1;
    ck_assert_uint_eq(touched, 0);
    ck_assert_uint_eq(sm_module(p.r[1]->btl)->count.helped, 0);
    ck_assert_ptr_null(sm_module(p.r[1]->btl)->helps);
    pair_close(&p);
}
END_TEST

START_TEST(many_at_once)
{
    struct pair p;
    struct waiting w[80];
    pair_open(&p, SM_COPY_COOPERATIVE);
    for (uint32_t i = 0; i < 80; i++) { /* more than there are descriptors */
        w[i] = (struct waiting){.op.done = on_done};
        ck_assert_int_eq(p.r[0]->btl->rdma->get(p.ep[0], p.a + (size_t)i * 64, address(p.b + (size_t)i * 64), NULL,
                                                70000, NULL, &w[i].op),
                         STRATA_OK);
    }
    for (int i = 0; i < 100000; i++) {
        p.r[0]->btl->ops->progress(p.r[0]->btl);
        p.r[1]->btl->ops->progress(p.r[1]->btl);
    }
    for (uint32_t i = 0; i < 80; i++) {
        ck_assert_int_eq(w[i].done, 1);
        ck_assert_int_eq(w[i].rc, STRATA_OK);
    }
    ck_assert_int_eq(memcmp(p.a, p.b, 70000 + 79 * 64), 0);
    pair_close(&p);
}
END_TEST

START_TEST(demotion)
{
    /* The kernel refuses (here: an address that is not mapped): this pair copies no more. */
    struct pair p;
    pair_open(&p, _i ? SM_COPY_COOPERATIVE : SM_COPY_ONE_SIDED);
    ck_assert_int_eq(p.r[0]->btl->rdma->get(p.ep[0], p.a, 4096, NULL, LENGTH, NULL, &p.w.op), STRATA_OK);
    drive(&p, true);
    ck_assert_int_eq(p.w.rc, STRATA_ERR_UNSUPPORTED);
    ck_assert_uint_eq(p.ep[0]->caps & (ST_BTL_GET | ST_BTL_PUT), 0);
    ck_assert_uint_eq(sm_module(p.r[0]->btl)->count.demotions, 1);
    ck_assert_int_eq(p.r[0]->btl->rdma->get(p.ep[0], p.a, address(p.b), NULL, 8, NULL, &p.w.op),
                     STRATA_ERR_UNSUPPORTED);
    char *text = p.r[0]->btl->ops->describe(p.r[0]->btl, p.ep[0]);
    ck_assert_ptr_nonnull(strstr(text, "\"single_copy\":\"off\""));
    free(text);
    pair_close(&p);
}
END_TEST

START_TEST(disabled)
{
    struct pair p;
    pair_open(&p, SM_COPY_OFF);
    ck_assert_uint_eq(p.ep[0]->caps & (ST_BTL_GET | ST_BTL_PUT), 0);
    ck_assert_uint_eq(p.r[0]->btl->caps & (ST_BTL_GET | ST_BTL_PUT), 0);
    ck_assert_int_eq(p.r[0]->btl->rdma->put(p.ep[0], p.a, address(p.b), NULL, 8, NULL, &p.w.op),
                     STRATA_ERR_UNSUPPORTED);
    pair_close(&p);
}
END_TEST

START_TEST(peer_dies)
{
    struct rig_board *board = rig_board(2);
    struct rig_rank r;
    struct waiting w = {.op.done = on_done};
    uint8_t *mine = calloc(1, LENGTH);
    _Atomic(int) *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        rig_init(&r, board, 1);
        rig_open(&r);
        atomic_store(go, 1);
        for (;;)
            pause();
    }
    rig_init(&r, board, 0);
    rig_open(&r);
    while (!atomic_load(go))
        let_run();
    struct st_btl_endpoint *ep = rig_connect(&r, 1);
    struct sm_peer *p = sm_peer(ep);
    ck_assert_int_eq(r.btl->rdma->get(ep, mine, address(mine), NULL, LENGTH, NULL, &w.op), STRATA_OK);
    r.btl->ops->progress(r.btl);
    if (_i) { /* it has claimed a chunk, and dies before it has copied it */
        struct sm_op *op = sm_module(r.btl)->ops.first;
        ck_assert_uint_ne(sm_coop_claim(op->desc, op->generation, op->n_chunks), SM_CLAIM_NONE);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert(!sm_process_alive(p->pid));
    for (int i = 0; i < 100000 && !w.done; i++)
        r.btl->ops->progress(r.btl);
    ck_assert_int_eq(w.done, 1);
    ck_assert_int_eq(w.rc, STRATA_ERR_PEER);
    rig_close(&r);
    free(mine);
}
END_TEST

START_TEST(choice_by_measurement)
{
    /* A machine whose kernel copies as fast as its caches takes single copy, one that is ten times slower does not. */
    const struct sm_copy_times alike = {.kernel = 4200, .cache = 3000, .call = 300};
    const struct sm_copy_times tenfold = {.kernel = 5100, .cache = 500, .call = 300};
    const struct sm_copy_times slow = {.kernel = 8000, .cache = 1500, .call = 600};

    ck_assert_uint_eq(sm_choose_rdma_min(&alike, true), 65536);
    ck_assert_uint_eq(sm_choose_rdma_min(&tenfold, true), (size_t)1 << 40);
    ck_assert_uint_ge(sm_choose_rdma_min(&slow, false), 65536);
}
END_TEST

/* Of four fragments the least counts, scaled to 64 KiB; later ones count by a quarter, unless they show a change. */
START_TEST(ring_times)
{
    const uint64_t ns[] = {9000, 2000, 70000, 3000};
    struct sm_part_times t = {0};

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(sm_part_times_add(&t, 32768, ns[i]), i == 3);
    ck_assert_uint_eq(t.ns, 4000);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(sm_part_times_add(&t, 65536, 5600), i == 3);
    ck_assert_uint_eq(t.ns, 4400);
    for (int i = 0; i < 4; i++)
        (void)sm_part_times_add(&t, 65536, 9000);
    ck_assert_uint_eq(t.ns, 9000);
    for (int i = 0; i < 4; i++)
        (void)sm_part_times_add(&t, 65536, 4000);
    ck_assert_uint_eq(t.ns, 4000);
    for (int i = 0; i < 4; i++)
        (void)sm_part_times_add(&t, SM_RING_TIMED, UINT64_MAX / 65536);
    ck_assert_uint_le(t.ns, 1000000000); /* a clock that jumped */
}
END_TEST

/* What a peer has published is taken over; what cannot be true is measured again. */
START_TEST(facts_are_shared)
{
    enum { LIE = 2, NOTHING = 1, PUBLISHED = 0 };
    const struct sm_copy_times told = {
        .kernel = 4321, .cache = 3000, .call = 300, .kernel_16k = 1200, .cold_16k = 2000, .cold_64k = 9000};
    struct rig_board *b = rig_board(2);
    struct rig_rank r[2];
    struct st_btl_endpoint *ep;
    struct sm_module *m[2];
    struct st_btl_facts facts;

    for (int i = 0; i < 2; i++) {
        rig_init(&r[i], b, i);
        r[i].base.tune = ST_TUNE_FACTS;
        rig_open(&r[i]);
        m[i] = sm_module(r[i].btl);
        m[i]->header->package = 5;
    }
    if (_i != NOTHING)
        sm_facts_publish(&m[1]->header->facts[SM_NEAR], &told);
    if (_i == LIE)
        m[1]->header->facts[SM_NEAR].kernel = 0;
    ep = rig_connect(&r[0], 1);
    ck_assert_int_eq(sm_peer(ep)->distance, SM_NEAR);
    const struct sm_costs *near = &m[0]->costs[SM_NEAR];
    facts = st_btl_facts_of(ep);
    if (sm_peer(ep)->single_copy != SM_COPY_OFF && near->times.kernel) { /* copies are allowed, ranks do not crowd */
        ck_assert_int_eq(near->taken_over, _i == PUBLISHED);
        ck_assert_uint_eq(facts.rdma_cost, sm_choose_rdma_min(&near->times, true));
        ck_assert_uint_eq(facts.alone_cost, sm_choose_alone(&near->times, r[0].btl));
        ck_assert(m[0]->header->facts[SM_NEAR].known); /* passed on */
        ck_assert(!m[0]->costs[SM_ANY].known);
        if (_i == PUBLISHED)
            ck_assert_uint_eq(near->times.kernel, told.kernel);
        else
            ck_assert(near->times.call > 0 && near->times.kernel >= near->times.kernel_16k && near->times.cold_64k > 0);
    }
    rig_close(&r[0]);
    rig_close(&r[1]);
}
END_TEST

START_TEST(distances)
{
    ck_assert_int_eq(sm_distance_of(0, 0), SM_NEAR);
    ck_assert_int_eq(sm_distance_of(0, 1), SM_ANY);
    ck_assert_int_eq(sm_distance_of(SM_ROAMS, SM_ROAMS), SM_ANY);
    ck_assert_int_ge(sm_package(), SM_ROAMS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("single copy");
    TCase *t = tcase_create("copy");
    tcase_add_loop_test(t, facts_are_shared, 0, 3);
    tcase_add_test(t, distances);
    tcase_add_loop_test(t, get_and_put, 0, (int)(sizeof ways / sizeof ways[0]));
    tcase_add_test(t, late_helper_does_no_harm);
    tcase_add_test(t, alone_on_a_busy_machine);
    tcase_add_test(t, many_at_once);
    tcase_add_loop_test(t, demotion, 0, 2);
    tcase_add_test(t, disabled);
    tcase_add_loop_test(t, peer_dies, 0, 2);
    tcase_add_test(t, choice_by_measurement);
    tcase_add_test(t, ring_times);
    suite_add_tcase(s, t);
    return run_suite(s);
}

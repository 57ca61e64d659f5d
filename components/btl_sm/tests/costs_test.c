/* Costs that are learnt from the times of fragments, by times of the test's own: when a message that travels alone is
 * announced, what one descheduled reading does, who only sends, and that the PML gets new limits. */
#include "rig.h"
#include "learn.h"
#include "single_copy.h"
#include "support/run_suite.h"
#include "support/world.h"
#include <check.h>
#include <strata/sdk/pml.h>
#include "components/pml_ob1/ob1.h"
#include "components/pml_ob1/peer.h"

#define STREAM 65536u
#define NEVER  ((size_t)1 << 40)

/* Kernels that copy fast, slowly, and much more slowly than the caches. */
static const struct sm_copy_times usual = {.kernel = 7000, .cache = 1000, .call = 300};
static const struct sm_copy_times fast = {.kernel = 4200, .cache = 3000, .call = 300};
static const struct sm_copy_times slow = {.kernel = 10000, .cache = 2000, .call = 1800};
static const struct sm_copy_times tenfold = {.kernel = 5100, .cache = 500, .call = 300};

static struct st_btl attributes(void)
{
    return (struct st_btl){.facts = {.latency_ns = 100, .ask_cost = STREAM}};
}

static uint32_t alone(const struct sm_copy_times *times, uint64_t ring)
{
    struct st_btl btl = attributes();
    struct sm_copy_times t = *times;

    t.ring = ring;
    return sm_choose_alone(&t, &btl);
}

START_TEST(from_which_length)
{
    struct st_btl btl = attributes();

    /* 64 KiB are copied twice in 18 us, once in 3.9 us, and asking takes 500 ns: 2,323 bytes. In 7.2 us: 9,929. */
    ck_assert_uint_eq(alone(&fast, 9000), 2048);
    ck_assert_uint_eq(alone(&fast, 3600), 8192);
    ck_assert_uint_eq(alone(&fast, 2000), 262144); /* 327,680 */
    ck_assert_uint_eq(alone(&fast, 1950), 0);
    ck_assert_uint_eq(alone(&slow, 6000), 32768); /* 34,492 */
    ck_assert_uint_eq(alone(&slow, 4110), 0);     /* 6 MiB are as good as never */
    ck_assert_uint_eq(alone(&slow, 2500), 0);
    ck_assert_uint_eq(alone(&fast, 999999999), 1024); /* a peer may say anything */
    /* Not before the ring is known, but for what would be announced in any case. */
    ck_assert_uint_eq(alone(&fast, 0), STREAM + 1);
    ck_assert_uint_eq(alone(&slow, 0), STREAM + 1);
    ck_assert_uint_eq(alone(&tenfold, 0), 0);
    btl.facts.fixed = true;
    ck_assert_uint_eq(sm_choose_alone(&fast, &btl), 0);
}
END_TEST

/* Whatever a ring takes, there are few values, as each makes a table. */
START_TEST(few_steps)
{
    uint32_t seen = 0;

    for (uint64_t ring = 500; ring < 100000; ring += 7) {
        uint32_t from = alone(_i == 0 ? &fast : _i == 1 ? &slow : &tenfold, ring);
        ck_assert_uint_eq(from & (from - 1), 0);
        seen |= from;
    }
    ck_assert_int_le(__builtin_popcount(seen), 12);
}
END_TEST

/* A module that has nothing but what calibrate.c looks at. */
static struct sm_module *module(const struct sm_copy_times *times)
{
    static const struct sm_params par = {.single_copy = SM_COPY_AUTO};
    static struct sm_header header;
    struct sm_module *m = calloc(1, sizeof *m);

    memset(&header, 0, sizeof header);
    m->btl = attributes();
    m->par = &par;
    m->header = &header;
    if (times) {
        m->costs[SM_NEAR].times = *times;
        m->costs[SM_NEAR].rdma = m->costs[SM_NEAR].chosen = sm_choose_rdma_min(times, true);
        m->costs[SM_NEAR].alone = sm_choose_alone(times, &m->btl);
        m->costs[SM_NEAR].due = SM_FIRST_TRIAL;
    }
    return m;
}

static void took(struct sm_module *m, int n, uint64_t ns)
{
    for (int i = 0; i < n; i++)
        sm_ring_took(m, SM_NEAR, 65536, ns);
}

/* Alone, nothing is announced until a ring has been timed; of the readings the least counts. */
START_TEST(rings_are_timed_first)
{
    struct sm_module *m = module(&fast);
    const struct sm_costs *costs = &m->costs[SM_NEAR];

    ck_assert_uint_eq(costs->alone, STREAM + 1);
    took(m, 3, 5000000); /* descheduled */
    ck_assert_uint_eq(costs->alone, STREAM + 1);
    ck_assert_uint_eq(m->work, 0);
    took(m, 1, 3600);
    ck_assert_uint_eq(costs->alone, 8192);
    ck_assert_uint_eq(sm_facts_read_part(&m->header->facts[SM_NEAR].ring), 3600);
    ck_assert_uint_eq(m->work, 1); /* the worker is to be told, once */
    ck_assert(costs->changed);
    took(m, 400, 9000);
    ck_assert_uint_eq(costs->alone, 2048);
    ck_assert_uint_eq(m->work, 1);
    sm_costs_tell(m);
    ck_assert_uint_eq(m->work, 0);
    ck_assert(!costs->changed);
    took(m, 400, 9000);
    ck_assert_uint_eq(m->work, 0);
    ck_assert_uint_eq(m->costs[SM_ANY].alone, 0);
    free(m);
}
END_TEST

/* Near the border of two steps the one in use stays. */
START_TEST(steps_are_sticky)
{
    struct sm_module *m = module(&fast);
    const struct sm_costs *costs = &m->costs[SM_NEAR];
    uint32_t before, changes = 0;

    took(m, 4, 3600);
    before = costs->alone;
    for (int i = 0; i < 400; i++) {
        took(m, 4, i % 2 ? 2700 : 3870); /* 8 and 16 KiB meet at 3,283 */
        changes += costs->alone != before;
        before = costs->alone;
    }
    ck_assert_uint_le(changes, 1);
    took(m, 400, 1900);
    ck_assert_uint_eq(costs->alone, 0);
    took(m, 400, 3400); /* 8 KiB, or 16 where the kernel takes an eighth longer */
    ck_assert_uint_eq(costs->alone, 16384);
    took(m, 400, 3600);
    ck_assert_uint_eq(costs->alone, 8192);
    took(m, 400, 3400);
    ck_assert_uint_eq(costs->alone, 8192);
    free(m);
}
END_TEST

/* More ranks than processors, single copy off, or limits of the user: nothing is known of copies, nothing is learnt. */
START_TEST(nothing_is_learnt)
{
    struct sm_module *m = module(NULL);

    took(m, 64, 9000);
    ck_assert_uint_eq(m->costs[SM_NEAR].alone, 0);
    ck_assert_uint_eq(m->costs[SM_NEAR].rdma, 0);
    ck_assert_uint_eq(m->work, 0);
    ck_assert_uint_eq(sm_facts_read_part(&m->header->facts[SM_NEAR].ring), 0);
    free(m);
}
END_TEST

/* A ring that turns out to be slower than single copy by both sides is left to short messages, and comes back. */
START_TEST(rings_decide)
{
    struct sm_module *m = module(&usual);
    const struct sm_costs *costs = &m->costs[SM_NEAR];

    ck_assert_uint_eq(costs->rdma, NEVER);
    took(m, 64, 8000);
    ck_assert_uint_eq(costs->rdma, 65536);
    ck_assert_uint_eq(m->costs[SM_ANY].rdma, 0);
    took(m, 256, 4300); /* hardly more than 6 tenths of 7000: what is in use stays */
    ck_assert_uint_eq(costs->rdma, 65536);
    took(m, 256, 2000);
    ck_assert_uint_eq(costs->rdma, NEVER);
    free(m);
}
END_TEST

enum { MIB = 1 << 20 };

static void moved(struct sm_module *m, unsigned mib, bool by_ring)
{
    for (unsigned i = 0; i < mib; i++)
        sm_costs_moved(m, SM_NEAR, MIB, by_ring);
}

/* A peer of a module that is at the other end of no segment but `header`. */
static struct sm_peer *peer_of(struct sm_module *m, struct sm_header *header)
{
    struct sm_peer *p = calloc(1, sizeof *p);

    p->ep.btl = &m->btl;
    p->header = header;
    p->distance = SM_NEAR;
    return p;
}

static void copied(struct sm_peer *p, int n, uint64_t ns)
{
    for (int i = 0; i < n; i++)
        sm_copied(p, 65536, ns, 2 * 65536);
}

/* The slower copy into or out of a ring counts in a window, their sum for a message alone; the kernel's copies of
 * messages count instead of those that were measured at first. */
START_TEST(both_ends_count)
{
    struct sm_module *m = module(&usual);
    struct sm_header sender = {.tail = 0};
    struct sm_peer *p = peer_of(m, &sender);
    const struct sm_costs *costs = &m->costs[SM_NEAR];

    took(m, 64, 3000);
    ck_assert_uint_eq(costs->rdma, NEVER);
    sm_facts_publish_part(&sender.facts[SM_NEAR].fill, 8000);
    for (int i = 0; i < 4; i++)
        sm_fill_told(m, p);
    ck_assert_uint_eq(costs->times.fill, 8000);
    ck_assert_uint_eq(costs->rdma, 65536);
    ck_assert_uint_eq(costs->alone, 8192); /* 11 us by both, 6.7 by the kernel, asking 500 ns: 7,620 bytes */
    copied(p, 64, 20000);
    ck_assert_uint_eq(costs->times.copy, 20000);
    ck_assert_uint_eq(costs->rdma, NEVER);
    ck_assert_uint_eq(costs->alone, 8192); /* of shorter messages nothing is known */
    for (int i = 0; i < 4; i++)
        sm_copied(p, 32768, 10000, 65536);
    ck_assert_uint_eq(costs->times.small, 20000);
    ck_assert_uint_eq(costs->alone, 0);
    ck_assert_uint_eq(sm_facts_read_part(&m->header->facts[SM_NEAR].fill), 0); /* this process fills no ring */
    for (int i = 0; i < 64; i++)
        sm_ring_filled(p, 65536, 2000);
    ck_assert_uint_le(sm_facts_read_part(&m->header->facts[SM_NEAR].fill), 2300);
    sm_facts_publish_part(&sender.facts[SM_NEAR].fill, 30000);
    for (int i = 0; i < 4; i++)
        sm_fill_told(m, p); /* it has times of its own */
    ck_assert_uint_le(costs->times.fill, 2300);
    free(p);
    free(m);
}
END_TEST

/* The way that is not in use is tried, ever more rarely while it stays the worse one, and taken when it is better. */
START_TEST(other_way_is_tried)
{
    struct sm_module *m = module(&usual);
    struct sm_header sender = {.tail = 0};
    struct sm_peer *p = peer_of(m, &sender);
    const struct sm_costs *costs = &m->costs[SM_NEAR];

    took(m, 64, 3000);
    moved(m, 63, true);
    ck_assert_uint_eq(costs->rdma, NEVER);
    moved(m, 1, true);
    ck_assert(costs->tries);
    ck_assert_uint_eq(costs->rdma, 65536);
    took(m, 64, 3000); /* streams go on meanwhile */
    ck_assert_uint_eq(costs->rdma, 65536);
    for (unsigned rarer = 1; rarer <= 32; rarer *= 2) {
        unsigned share = 64 * (rarer < 16 ? rarer : 16);
        copied(p, 15, 9000);
        ck_assert(costs->tries);
        copied(p, 1, 9000);
        ck_assert(!costs->tries);
        ck_assert_uint_eq(costs->rdma, NEVER);
        moved(m, 1, false);            /* answered in the trial, come later */
        moved(m, 3 * share - 1, true); /* of the trial, after it at twice the share */
        ck_assert(!costs->tries || rarer >= 16);
        while (!costs->tries)
            moved(m, 1, true);
    }
    copied(p, 16, 3000); /* replaces what was known */
    ck_assert_uint_eq(costs->times.copy, 3000);
    ck_assert_uint_eq(costs->rdma, 65536);
    moved(m, 63, false); /* and rings are tried as often as at first */
    ck_assert(!costs->tries);
    moved(m, 1, false);
    ck_assert(costs->tries);
    ck_assert_uint_eq(costs->rdma, NEVER);
    took(m, 4, 1000);
    moved(m, 1, true);
    ck_assert_uint_eq(costs->rdma, NEVER);
    ck_assert(!costs->tries);
    free(p);
    free(m);
}
END_TEST

/* A trial that nothing comes by ends all the same, changes nothing, and the next is not rarer for it. */
START_TEST(trial_without_messages)
{
    struct sm_module *m = module(&usual);
    struct sm_costs *costs = &m->costs[SM_NEAR];

    took(m, 64, 3000);
    moved(m, 64, true);
    ck_assert(costs->tries);
    ck_assert_uint_eq(m->work, 2); /* new limits, and the end of the trial */
    costs->until = UINT64_MAX;
    sm_costs_tell(m);
    ck_assert(costs->tries);
    costs->until = 0;
    sm_costs_tell(m);
    ck_assert(!costs->tries);
    ck_assert_uint_eq(costs->rdma, NEVER);
    ck_assert_uint_eq(costs->patience, 0);
    ck_assert_uint_eq(m->work, 0);
    costs->steady = true; /* another part tries ways */
    moved(m, 1000, true);
    ck_assert(!costs->tries);
    free(m);
}
END_TEST

/* Copies into the ring that were slow when it was last used do not keep it from being tried. */
START_TEST(old_fills_are_forgotten)
{
    struct sm_module *m = module(&usual);
    struct sm_header peer = {.tail = 0};
    struct sm_peer *p = peer_of(m, &peer);
    struct sm_costs *costs = &m->costs[SM_NEAR];

    took(m, 4, 3000);
    for (int i = 0; i < 4; i++)
        sm_ring_filled(p, 65536, 60000);
    ck_assert_uint_eq(costs->rdma, 65536);
    moved(m, 64, false);
    ck_assert(costs->tries);
    sm_facts_publish_part(&peer.facts[SM_NEAR].fill, 3500);
    for (int i = 0; i < 4; i++)
        sm_fill_told(m, p);
    took(m, 4, 3000);
    ck_assert_uint_eq(costs->times.fill, 3500);
    moved(m, 1, true);
    ck_assert(!costs->tries);
    ck_assert_uint_eq(costs->rdma, NEVER);
    free(p);
    free(m);
}
END_TEST

START_TEST(what_is_told_of_rings)
{
    struct sm_copy_facts facts = {.known = 0};

    sm_facts_publish_part(&facts.ring, 4000);
    ck_assert_uint_eq(sm_facts_read_part(&facts.ring), 4000);
    sm_facts_publish_part(&facts.ring, 4500); /* senders keep the line */
    ck_assert_uint_eq(sm_facts_read_part(&facts.ring), 4000);
    sm_facts_publish_part(&facts.ring, 3000);
    ck_assert_uint_eq(sm_facts_read_part(&facts.ring), 3000);
    atomic_store(&facts.ring, UINT32_MAX); /* a hostile owner */
    ck_assert_uint_eq(sm_facts_read_part(&facts.ring), 0);
}
END_TEST

static void drop(void *arg, const struct st_frag *f)
{
    (void)arg, (void)f;
}

/* Long messages that go by the ring, and are taken. */
static void send_long(struct rig_rank *r, struct st_btl_endpoint *ep, int n)
{
    static uint8_t data[8192];

    for (int i = 0; i < n; i++) {
        while (r[0].btl->ops->send(ep, ST_AM_TEST, "h", 1, data, sizeof data) != STRATA_OK)
            (void)r[1].btl->ops->progress(r[1].btl);
        (void)r[1].btl->ops->progress(r[1].btl);
        (void)r[0].btl->ops->progress(r[0].btl);
    }
}

/* A rank to which nothing long is sent learns from its receivers; once it has times of its own, those count. */
START_TEST(senders_hear)
{
    struct rig_board *b = rig_board(2);
    struct rig_rank r[2];
    struct sm_module *m[2];
    struct st_btl_endpoint *ep;
    struct sm_costs *near;

    for (int i = 0; i < 2; i++) {
        rig_init(&r[i], b, i);
        r[i].base.tune = ST_TUNE_OFF; /* no times but those below */
        rig_open(&r[i]);
        m[i] = sm_module(r[i].btl);
        m[i]->header->package = 5;
        r[i].btl->am[ST_AM_TEST].fn = drop;
    }
    ep = rig_connect(&r[0], 1);
    near = &m[0]->costs[SM_NEAR];
    near->times = fast;
    near->alone = sm_choose_alone(&fast, r[0].btl);
    send_long(r, ep, 100);
    ck_assert_uint_ge(m[1]->long_fragments, 80); /* the first ones went by the queue */
    ck_assert_uint_eq(near->alone, STREAM + 1);
    sm_facts_publish_part(&m[1]->header->facts[SM_NEAR].ring, 3600);
    sm_facts_publish_part(&m[1]->header->facts[SM_ANY].ring, 9000);
    send_long(r, ep, 40);
    ck_assert_uint_eq(near->times.ring, 3600);
    ck_assert_uint_gt(near->times.fill, 0); /* its own copies, as long as they take here */
    ck_assert_uint_eq(st_btl_facts_of(ep).alone_cost, near->alone);
    ck_assert_uint_eq(m[0]->work, 0);
    ck_assert_uint_eq(sm_facts_read_part(&m[0]->header->facts[SM_NEAR].ring), 0); /* what was read is not passed on */
    took(m[0], 64, 3600);
    sm_facts_publish_part(&m[1]->header->facts[SM_NEAR].ring, 9000);
    send_long(r, ep, 100);
    ck_assert_uint_eq(near->times.ring, 3600);
    rig_close(&r[0]);
    rig_close(&r[1]);
}
END_TEST

/* ---- a job ---- */

/* SLOW: ns of 64 KiB through a ring; copies by the kernel, whose real times count, take less on any machine. */
enum { MESSAGE = 32768, ROUNDS = 6, SLOW = 900000000 };

static uint64_t announced(const struct tw_rank *r)
{
    const uint64_t *n = ((const struct ob1 *)r->comm->pml)->by_protocol;

    return n[OB1_P_RNDV] + n[OB1_P_RNDV_EXPOSED] + n[OB1_P_RNDV_KEY];
}

/* A send that waits long, as on a busy machine, would make the next ones go as a window. */
static void forget_waits(const struct tw_rank *r)
{
    const struct st_peer *peer = st_worker_peer_known(r->comm->worker, !r->rank);

    if (peer && ob1_peer_of(peer))
        ob1_peer_of(peer)->flow.late = 0;
}

static void ping_pong(const struct tw_rank *r, size_t length, int rounds)
{
    char *data = calloc(1, length);

    for (int i = 0; i < rounds; i++) {
        forget_waits(r);
        if (r->rank == 0)
            CHECK_OK(strata_send(r->comm, data, length, 1, 1));
        CHECK_OK(strata_recv(r->comm, data, length, !r->rank, 1, NULL));
        if (r->rank == 1)
            CHECK_OK(strata_send(r->comm, data, length, 0, 1));
    }
    free(data);
}

/* Messages alone are streams at first, fewer than would tell the time of a ring; announced once it is known. */
static void learns(struct tw_rank *r)
{
    struct st_worker *w = r->comm->worker;
    struct st_btl_endpoint *ep;
    struct sm_module *m;
    struct sm_costs *costs;
    struct st_peer *peer;
    uint64_t before;

    ping_pong(r, 1, 40); /* the peer is hot */
    peer = st_worker_peer_known(w, !r->rank);
    ep = st_peer_path(peer, 0);
    m = sm_module(ep->btl);
    costs = &m->costs[sm_peer(ep)->distance];
    tw_barrier(r);
    *costs = (struct sm_costs){.known = true,
                               .times = fast,
                               .rdma = NEVER,
                               .chosen = NEVER,
                               .due = SM_FIRST_TRIAL,
                               .alone = sm_choose_alone(&fast, &m->btl)};
    st_worker_facts_changed(w, !r->rank);
    st_worker_facts_changed(w, r->rank); /* not connected: nothing happens */
    st_worker_facts_changed(w, -1);
    if (!(ep->caps & ST_BTL_GET)) {
        CHECK_EQ(ob1_peer_of(peer)->alone_min, UINT32_MAX); /* copies are forbidden here */
        return;
    }
    CHECK_EQ(ob1_peer_of(peer)->alone_min, STREAM + 1);
    tw_barrier(r);
    before = announced(r);
    ping_pong(r, MESSAGE, ROUNDS);
    CHECK_EQ(announced(r), before);
    CHECK_EQ(ob1_peer_of(peer)->alone_min, STREAM + 1);
    tw_barrier(r);
    costs->ring = (struct sm_part_times){.n = 0};
    for (int i = 0; i < 4; i++)
        sm_ring_took(m, (enum sm_distance)sm_peer(ep)->distance, 65536, i == 1 ? SLOW : SLOW + 50000000);
    CHECK_EQ(ob1_peer_of(peer)->alone_min, STREAM + 1); /* not in the middle of something */
    strata_progress(r->s);
    CHECK_EQ(ob1_peer_of(peer)->alone_min, 1024);
    tw_barrier(r);
    ping_pong(r, MESSAGE, ROUNDS);
    CHECK(announced(r) >= before + ROUNDS - 1);
    tw_quiesce(r);
}

static const char *const settings[] = {"btl=self,sm mca_base_tune=off", "btl=self,sm mca_base_tune=facts"};

START_TEST(the_pml_learns)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i]}, learns, NULL);
}
END_TEST

START_TEST(the_pml_learns_with_threads)
{
    tw_run(&(struct tw_options){.n = 2, .settings = settings[0], .level = STRATA_THREAD_MULTIPLE}, learns, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("costs of btl_sm");
    TCase *t = tcase_create("times"), *job = tcase_create("job");

    tcase_add_test(t, from_which_length);
    tcase_add_loop_test(t, few_steps, 0, 3);
    tcase_add_test(t, rings_are_timed_first);
    tcase_add_test(t, steps_are_sticky);
    tcase_add_test(t, nothing_is_learnt);
    tcase_add_test(t, rings_decide);
    tcase_add_test(t, both_ends_count);
    tcase_add_test(t, other_way_is_tried);
    tcase_add_test(t, trial_without_messages);
    tcase_add_test(t, old_fills_are_forgotten);
    tcase_add_test(t, what_is_told_of_rings);
    tcase_add_test(t, senders_hear);
    suite_add_tcase(s, t);
    tcase_set_timeout(job, test_timeout(120));
    tcase_add_loop_test(job, the_pml_learns, 0, 2);
    tcase_add_test(job, the_pml_learns_with_threads);
    suite_add_tcase(s, job);
    return run_suite(s);
}

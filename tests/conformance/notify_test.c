/* Put with notice (strata/sdk/notify.h) over every transport that strata-info finds and the ways of btl_shuffle: the
 * data is there when the notice comes, for other threads, too; each comes once, from several senders; back-pressure, a
 * peer that fails, wrong calls. With many more operations: notify_long_test.c. */
#include <pthread.h>
#include "support/let_run.h"
#include "support/notify_ends.h"
#include "support/over_transports.h"
#include "support/suite.h"

enum { VICTIM = 0, MANY = 3000, TURNS = 150 };

/* Several senders; the receiver looks at all bytes. */
static void from_several(struct tw_rank *r)
{
    struct notify_receiver in = {.look = notify_look};
    notify_turns(r, &in, (uint32_t)suite_scale(TURNS), NULL);
}

/* ---- a thread that sees each notice as soon as the one that polls has told it, and looks at the last byte ---- */

enum { TOLD = 64 };
_Static_assert(TOLD >= NOTIFY_SLOTS * (NOTIFY_RANKS - 1), "a turn fits");

struct checked {
    struct notify_receiver in;
    pthread_t thread;
    struct {
        int from;
        uint32_t slot, turn;
    } told[TOLD];
    _Atomic(uint32_t) n_told; /* release: pairs with the checker's acquire */
    _Atomic(uint32_t) n_checked;
    atomic_bool ends;
};

static void tell(struct notify_receiver *in, int from, uint32_t slot, uint32_t turn)
{
    struct checked *c = ST_CONTAINER(in, struct checked, in);
    uint32_t n = atomic_load_explicit(&c->n_told, memory_order_relaxed);
    c->told[n % TOLD].from = from;
    c->told[n % TOLD].slot = slot;
    c->told[n % TOLD].turn = turn;
    atomic_store_explicit(&c->n_told, n + 1, memory_order_release);
}

static void *checker(void *arg)
{
    struct checked *c = arg;
    for (uint32_t n = 0; !atomic_load(&c->ends); atomic_store(&c->n_checked, ++n)) {
        while (atomic_load_explicit(&c->n_told, memory_order_acquire) == n)
            if (atomic_load(&c->ends))
                return NULL;
        int from = c->told[n % TOLD].from;
        uint32_t slot = c->told[n % TOLD].slot, turn = c->told[n % TOLD].turn, len = notify_length(from, turn, slot);
        const char *last = c->in.area[from] + (size_t)slot * NOTIFY_SLOT + len - 1;
        CHECK_EQ(pattern_check_at(last, len - 1, 1, notify_seed(from, turn, slot)), -1);
    }
    return NULL;
}

/* A slot is not filled again before. */
static void all_checked(struct notify_receiver *in)
{
    struct checked *c = ST_CONTAINER(in, struct checked, in);
    while (atomic_load(&c->n_checked) != atomic_load(&c->n_told))
        let_run();
}

static void seen_by_another_thread(struct tw_rank *r)
{
    struct checked c = {.in.look = tell};
    if (r->rank == 0)
        CHECK(pthread_create(&c.thread, NULL, checker, &c) == 0);
    notify_turns(r, &c.in, (uint32_t)suite_scale(TURNS), all_checked);
    atomic_store(&c.ends, true);
    if (r->rank == 0)
        CHECK(pthread_join(c.thread, NULL) == 0);
}

/* ---- back-pressure ---- */

/* MANY notices are more than the transport takes while nobody reads. The kernel has megabytes for those of btl_tcp. */
static bool must_wait(const struct tw_rank *r, const struct notify_sender *s)
{
    const char *name = st_peer_path(s->peer, 0)->btl->component->name;
    return strcmp(name, "tcp") != 0 || strstr(r->arg, "sndbuf") != NULL;
}

/* More notices than the transport takes, and nobody looks: they wait, and all come. */
static void back_pressure(struct tw_rank *r)
{
    struct notify_receiver in = {0};
    struct notify_sender s;
    notify_join(r, &in);
    if (r->rank == 0) {
        notify_expose(r, &in);
        tw_barrier(r);
        while (atomic_load(&in.got[1]) < MANY)
            suite_spin(r->s, 1);
    } else {
        notify_open(r, &s, MANY);
        for (uint32_t i = 0; i < MANY; i++)
            CHECK(notify_put(&s, &s.op[i], 0, 0, 0) >= STRATA_OK); /* without data nothing can be refused */
        fprintf(stderr, "%u of %d notices wait\n", s.under_way, MANY);
        CHECK(s.under_way > 0 || !must_wait(r, &s));
        tw_barrier(r); /* until here the receiver takes nothing */
        while (s.under_way)
            suite_spin(r->s, 1);
        CHECK_EQ(s.failed, 0);
        notify_close(&s);
    }
    tw_quiesce(r);
    CHECK_EQ(atomic_load(&in.got[1]), r->rank == 0 ? MANY : 0);
    notify_conceal(r, &in);
}

/* The same with data, which some transports refuse. */
static void back_pressure_with_data(struct tw_rank *r)
{
    struct notify_receiver in = {0};
    struct notify_sender s;
    notify_join(r, &in);
    if (r->rank == 0) {
        notify_expose(r, &in);
        tw_barrier(r);
        while (atomic_load(&in.got[1]) < MANY)
            suite_spin(r->s, 1);
    } else {
        uint32_t n = 0;
        notify_open(r, &s, MANY);
        while (n < MANY && notify_put(&s, &s.op[n], n % NOTIFY_SLOTS, 0, 1 + n % 200) >= STRATA_OK)
            n++;
        fprintf(stderr, "%u of %d puts taken, %u wait\n", n, MANY, s.under_way);
        CHECK(n < MANY || s.under_way > 0);
        tw_barrier(r); /* until here the receiver takes nothing */
        while (n < MANY)
            if (notify_put(&s, &s.op[n], n % NOTIFY_SLOTS, 0, 1 + n % 200) >= STRATA_OK)
                n++;
            else
                suite_spin(r->s, 1);
        while (s.under_way)
            suite_spin(r->s, 1);
        CHECK_EQ(s.failed, 0);
        notify_close(&s);
    }
    tw_quiesce(r);
    CHECK_EQ(atomic_load(&in.got[1]), r->rank == 0 ? MANY : 0);
    notify_conceal(r, &in);
}

/* The receiver is given up: what waits ends with an error, once each; later ones are refused. */
static void receiver_fails(struct tw_rank *r)
{
    struct notify_receiver in = {0};
    struct notify_sender s;
    notify_join(r, &in);
    if (r->rank == VICTIM) {
        notify_expose(r, &in);
        tw_barrier(r);
        CHECK_OK(strata_host_peer_failed(r->s, 1, "the test is over"));
    } else {
        notify_open(r, &s, MANY);
        for (uint32_t i = 0; i < MANY; i++)
            CHECK(notify_put(&s, &s.op[i], 0, 0, 0) >= STRATA_OK);
        uint32_t waiting = s.under_way;
        CHECK(waiting > 0 || !must_wait(r, &s));
        CHECK_OK(strata_host_peer_failed(r->s, VICTIM, "the test says so"));
        while (s.under_way || !s.peer->failed)
            suite_spin(r->s, 1);
        CHECK((s.failed > 0 || waiting == 0) && s.failed <= waiting);
        CHECK_RC(notify_put(&s, &s.op[0], 0, 0, 0), STRATA_ERR_PEER);
        CHECK_RC(notify_put(&s, &s.op[0], 0, 0, 8), STRATA_ERR_PEER);
        notify_close(&s);
        tw_barrier(r);
    }
    tw_quiesce(r);
    notify_conceal(r, &in);
}

static void never(struct st_notify *n, int rc)
{
    (void)n, (void)rc;
    CHECK_MSG(false, "it was not begun");
}

static void wrong_calls(struct tw_rank *r)
{
    struct notify_receiver in = {0};
    struct st_worker *w = r->comm->worker;
    struct st_peer *peer;
    struct st_notify n = {.done = never};
    struct st_notify_put put = {.am = ST_AM_TEST, .notice = ST_NOTICE_MAX + 1};
    notify_join(r, &in);
    CHECK_OK(st_worker_peer(w, 1 - r->rank, &peer));
    CHECK_OK(st_worker_connect(w, peer));
    CHECK_RC(st_worker_put_notify(w, peer, 0, &put, &n), STRATA_ERR_ARG);
    put = (struct st_notify_put){.am = ST_AM_LANE};
    CHECK_RC(st_worker_put_notify(w, peer, 0, &put, &n), STRATA_ERR_ARG);
    put = (struct st_notify_put){.am = ST_AM_TEST};
    CHECK_RC(st_worker_put_notify(w, peer, 7, &put, &n), STRATA_ERR_ARG);
    tw_quiesce(r);
    notify_conceal(r, &in);
}

static const struct over_case cases[] = {
    {"from_several", from_several, NOTIFY_RANKS, STRATA_THREAD_SINGLE, false},
    {"seen_by_another_thread", seen_by_another_thread, NOTIFY_RANKS, STRATA_THREAD_SINGLE, false},
    {"back_pressure", back_pressure, 2, STRATA_THREAD_SINGLE, false},
    {"back_pressure_with_data", back_pressure_with_data, 2, STRATA_THREAD_SINGLE, false},
    {"receiver_fails", receiver_fails, 2, STRATA_THREAD_SINGLE, true},
    {"wrong_calls", wrong_calls, 2, STRATA_THREAD_SINGLE, false}};

OVER_SUITE(notify, OVER_PUTS, cases, "btl=shuffle,self btl_shuffle_window=64 btl_shuffle_again_percent=50",
           "btl=shuffle,self btl_shuffle_needs_reg=1 btl_shuffle_async_percent=100",
           "btl=tcp,self btl_tcp_sndbuf=16384 btl_tcp_rcvbuf=32768 btl_tcp_unsent=16384");

/* Many late peers at once: they claim entries of one directory, and visit a host that has fewer places than there are
 * visitors. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include "late.h"
#include "send.h"
#include "support/let_run.h"
#include "support/run_suite.h"

#define CROWD 24
struct crowd {
    struct sm_dir_entry dir[CROWD];
    pthread_barrier_t gate;
    uint32_t got[CROWD + 4];
};
static struct crowd crowd;

static void *claims(void *arg)
{
    uint32_t *got = arg;
    pthread_barrier_wait(&crowd.gate);
    *got = sm_dir_claim(crowd.dir, CROWD, (int)(got - crowd.got));
    return NULL;
}

START_TEST(claimed_at_once)
{
    pthread_t t[CROWD + 4];
    for (int round = 0; round < 50; round++) {
        uint32_t seen = 0, none = 0;
        memset(&crowd, 0, sizeof crowd);
        pthread_barrier_init(&crowd.gate, NULL, CROWD + 4);
        for (int i = 0; i < CROWD + 4; i++)
            ck_assert_int_eq(pthread_create(&t[i], NULL, claims, &crowd.got[i]), 0);
        for (int i = 0; i < CROWD + 4; i++)
            pthread_join(t[i], NULL);
        for (uint32_t i = 0; i < CROWD + 4; i++) {
            if (crowd.got[i] == SM_DIR_NONE) {
                none++;
                continue;
            }
            ck_assert_uint_eq(atomic_load(&crowd.dir[crowd.got[i]].name), i + 1);
            seen |= 1u << crowd.got[i];
        }
        ck_assert_uint_eq(none, 4);
        ck_assert_uint_eq(seen, (1u << CROWD) - 1);
    }
}
END_TEST

struct visitor {
    struct end *e;
    const _Atomic(bool) *host_closed;
    _Atomic(bool) stop, done;
    uint32_t sent;
    _Atomic(uint32_t) refused_since; /* connects refused after the host had closed */
};

/* A message to a host that has closed in order is dropped: it never stays without room. */
static void visit_send(struct visitor *v, struct st_btl_endpoint *ep, uint32_t len)
{
    int rc;
    while ((rc = end_send(v->e, ep, len)) == STRATA_ERR_AGAIN)
        idle(v->e, 1);
    RIG_CHECK(rc == STRATA_OK);
    v->sent++;
}

/* Comes, sends, goes, until told to stop. */
static void *visits(void *arg)
{
    struct visitor *v = arg;
    while (!atomic_load(&v->stop)) {
        struct st_btl_endpoint *ep = NULL;
        bool closed = atomic_load(v->host_closed);
        int rc = v->e->r.btl->ops->connect(v->e->r.btl, 0, &ep);
        RIG_CHECK(rc == STRATA_OK || rc == STRATA_ERR_UNREACHABLE);
        RIG_CHECK(!closed || rc == STRATA_ERR_UNREACHABLE);
        if (rc != STRATA_OK) {
            RIG_CHECK(!ep);
            v->refused_since += closed;
            idle(v->e, 1);
            continue;
        }
        for (int k = 0; k < 20; k++)
            visit_send(v, ep, k == 5 ? 8000 : 24);
        v->e->r.btl->ops->disconnect(ep);
        idle(v->e, v->sent % 3 ? 1 : 64);
    }
    atomic_store(&v->done, true);
    return NULL;
}

#define VISITORS 5
#define MESSAGES 4000

static bool all_done(struct visitor *v)
{
    for (int i = 0; i < VISITORS; i++)
        if (!atomic_load(&v[i].done))
            return false;
    return true;
}

/* Ends the visits; the host, unless it has closed, goes on until nobody visits any more. How many messages were sent.
 */
static uint32_t visits_end(struct end *host, struct visitor *v, const pthread_t *t)
{
    uint32_t sent = 0;
    for (int i = 0; i < VISITORS; i++)
        atomic_store(&v[i].stop, true);
    AWAIT(all_done(v), host ? idle(host, 1) : let_run());
    for (int i = 0; i < VISITORS; i++) {
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
        sent += v[i].sent;
    }
    return sent;
}

/* The host has closed while they came: each visitor learns it from its next connects, none meets an error, and none
 * keeps the host's memory. */
static void host_closes_early(struct end *host, struct visitor *v, const pthread_t *t, _Atomic(bool) *closed)
{
    uint32_t got = host->n;
    end_close(host);
    atomic_store(closed, true);
    for (int i = 0; i < VISITORS; i++)
        AWAIT(atomic_load(&v[i].refused_since) >= 3, let_run());
    ck_assert_uint_ge(visits_end(NULL, v, t), got);
    for (int i = 0; i < VISITORS; i++) {
        idle(v[i].e, 64);
        ck_assert_int_eq(v[i].e->r.failures, 0);
        ck_assert_uint_eq(mod(v[i].e)->count.violations, 0);
        ck_assert_uint_eq(mod(v[i].e)->n_peers, 0);
        ck_assert(sm_cells_idle(mod(v[i].e)));
    }
    ck_assert_int_eq(mappings(), VISITORS); /* each one's own */
}

/* More visitors than places, all the time; _i 1: the host closes while they still come. */
START_TEST(crowd_at_the_door)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 3);
    struct visitor v[VISITORS];
    pthread_t t[VISITORS];
    _Atomic(bool) closed = false;
    for (int i = 0; i < VISITORS; i++) {
        v[i] = (struct visitor){.e = end_opened(b, i + 1, 3), .host_closed = &closed};
        ck_assert_int_eq(pthread_create(&t[i], NULL, visits, &v[i]), 0);
    }
    AWAIT(host->n >= MESSAGES, idle(host, 1));
    ck_assert_uint_eq(host->bad, 0);
    ck_assert_uint_eq(mod(host)->count.violations, 0);
    if (_i == 0) {
        receive(host, visits_end(host, v, t));
        idle(host, 64);
        ck_assert_uint_eq(entries(host), 0);
        for (uint32_t i = 0; i < mod(host)->n_rings; i++)
            ck_assert_uint_eq(mod(host)->hot.places[i].state, ST_HOT_FREE);
        ck_assert_uint_eq(mod(host)->count.violations, 0);
        ck_assert_int_eq(host->r.failures, 0);
        end_close(host);
    } else {
        host_closes_early(host, v, t, &closed);
    }
    for (int i = 0; i < VISITORS; i++)
        end_close(v[i].e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("crowd");
    TCase *t = tcase_create("crowd");
    tcase_add_test(t, claimed_at_once);
    tcase_add_loop_test(t, crowd_at_the_door, 0, 2);
    suite_add_tcase(s, t);
    return run_suite(s);
}

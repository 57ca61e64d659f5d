/* Peers that nobody knew of at the start: they come, speak or are spoken to first, and go; their entries in the
 * directory and their memory are used again. */
/* starts first */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <strata/sdk/btl_rdma.h>
#include "late.h"
#include "send.h"
#include "senders.h"
#include "support/form.h"
#include "support/let_run.h"
#include "support/run_suite.h"
#include "support/world.h"

enum { SANITIZED = 150, SHORT = 400, FULL = 2000 };
static int cycles; /* of peers that come and go */

START_TEST(opens_alone)
{
    struct rig_board *b = rig_board(1);
    struct rig_rank closed;
    rig_init(&closed, b, 0);
    ck_assert_int_eq(rig_try_open(&closed), STRATA_ERR_UNSUPPORTED); /* nobody can ever come */
    struct end *e = end_new(b, 7, 0);
    ck_assert_int_eq(rig_try_open(&e->r), STRATA_ERR_UNSUPPORTED); /* nobody may */
    e->r.par.late_peers = 4;
    end_open(e);
    ck_assert_uint_eq(mod(e)->n_dir, 5);
    ck_assert_int_eq(e->r.btl->ops->reach(e->r.btl, 1 << 20), STRATA_ERR_UNREACHABLE);
    end_close(e);
}
END_TEST

START_TEST(late_peer_sends_first)
{
    struct rig_board *b = rig_board(1);
    struct end *old = end_opened(b, 0, 8);
    idle(old, 3);
    struct end *young = end_opened(b, (3 << 10) + 1, 8);
    young->ep = rig_connect(&young->r, 0);
    for (uint32_t i = 1; i <= 30; i++) { /* the queue, cells, a ring */
        ck_assert_int_eq(end_send(young, young->ep, i % 3 ? i : 8000), STRATA_OK);
        receive(old, i);
    }
    ck_assert_uint_ne(sm_peer(young->ep)->hot.word, ST_HOT_NONE);
    old->ep = rig_connect(&old->r, (3 << 10) + 1);
    ck_assert_int_eq(end_send(old, old->ep, 100), STRATA_OK);
    receive(young, 1);
    ck_assert_uint_eq(entries(old), 1);
    end_close(young);
    end_close(old);
}
END_TEST

START_TEST(late_peer_is_spoken_to_first)
{
    struct rig_board *b = rig_board(1);
    struct end *old = end_opened(b, 5, 8), *young = end_opened(b, 4, 8);
    ck_assert_int_eq(old->r.btl->ops->reach(old->r.btl, 4), STRATA_OK);
    old->ep = rig_connect(&old->r, 4);
    for (uint32_t i = 1; i <= 30; i++) {
        ck_assert_int_eq(end_send(old, old->ep, i % 3 ? i : 8000), STRATA_OK);
        receive(young, i);
    }
    ck_assert_uint_eq(entries(young), 1);
    ck_assert_uint_eq(entries(old), 0); /* it has not answered */
    end_close(young);
    end_close(old);
}
END_TEST

/* How a visitor leaves: the host lets go first; the visitor first; the host never, as when upper layers keep their
 * endpoints. */
START_TEST(many_come_and_go)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 8);
    for (int i = 1; i <= cycles; i++) {
        int rank = i * 16 + 1 + i % 3; /* never the host's place on the board */
        struct end *v = end_opened(b, rank, 8);
        v->ep = rig_connect(&v->r, 0);
        host->ep = rig_connect(&host->r, rank);
        for (uint32_t k = 1; k <= 7; k++) {
            uint32_t from = host->n;
            ck_assert_int_eq(end_send(v, v->ep, k == 3 ? 8000 : k), STRATA_OK);
            receive(host, from + 1);
            ck_assert_int_eq(end_send(host, host->ep, k == 3 ? 8000 : k), STRATA_OK);
            receive(v, k);
        }
        uint32_t before = host->n, left = 0;
        if (_i == 0)
            host->r.btl->ops->disconnect(host->ep);
        if (_i == 1)
            v->r.btl->ops->disconnect(v->ep);
        else /* something unread in queue and ring when it goes */
            while (left < 5 && end_send(v, v->ep, 16) == STRATA_OK)
                left++;
        if (_i == 2 && i % 5 == 0) /* and in its own cells: nobody will read it */
            ck_assert_int_eq(end_send(host, host->ep, 16000), STRATA_OK);
        end_close(v);
        if (_i == 1)
            host->r.btl->ops->disconnect(host->ep);
        receive(host, before + left);
        if (i % 4 == 0)
            idle(host, 64);
        ck_assert_uint_le(entries(host), 9);
        ck_assert_uint_le(mod(host)->work, 1);
    }
    idle(host, 64);
    ck_assert_uint_eq(entries(host), 0);
    ck_assert_int_eq(mappings(), 1); /* its own */
    ck_assert(sm_cells_idle(mod(host)));
    if (_i < 2)
        ck_assert_uint_eq(mod(host)->n_peers, 0);
    ck_assert_uint_eq(mod(host)->hot.n_revoked, 0);
    for (uint32_t i = 0; i < mod(host)->n_rings; i++)
        ck_assert_uint_eq(mod(host)->hot.places[i].state, ST_HOT_FREE);
    if (_i == 2) { /* a late control message to who has ended: no error */
        ck_assert_int_eq(end_send(host, host->ep, 16), STRATA_OK);
        ck_assert_int_eq(host->r.btl->rdma->get(host->ep, b, 0, NULL, 8, NULL, NULL), STRATA_ERR_UNSUPPORTED);
        char *text = host->r.btl->ops->describe(host->r.btl, host->ep);
        ck_assert_ptr_nonnull(strstr(text, "ended"));
        free(text);
    }
    ck_assert_int_eq(host->r.failures, 0);
    end_close(host);
}
END_TEST

/* A report at the end of a job says how a peer was reached, although that has ended a moment earlier. */
START_TEST(reported_as_it_was)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 8), *v = end_opened(b, 17, 8);

    v->ep = rig_connect(&v->r, 0);
    host->ep = rig_connect(&host->r, 17);
    for (uint32_t k = 1; k <= 20; k++) {
        ck_assert_int_eq(end_send(host, host->ep, 100), STRATA_OK);
        receive(v, k);
    }
    char *before = host->r.btl->ops->describe(host->r.btl, host->ep);
    ck_assert_ptr_nonnull(strstr(before, "\"path\":\"ring\""));
    end_close(v);
    for (int i = 0; i < 1000 && !sm_peer(host->ep)->gone; i++)
        idle(host, 64);
    ck_assert(sm_peer(host->ep)->gone);
    char *after = host->r.btl->ops->describe(host->r.btl, host->ep);
    ck_assert_int_eq(strncmp(before, after, (size_t)(strstr(before, "\"single_copy_reason") - before)), 0);
    free(before);
    free(after);
    end_close(host);
}
END_TEST

/* The same two, again and again, without the owner having time to tidy. */
START_TEST(reconnecting)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 2), *v = end_opened(b, 1, 2);
    for (uint32_t i = 0; i < (uint32_t)cycles; i++) {
        v->ep = rig_connect(&v->r, 0);
        ck_assert_int_eq(end_send(v, v->ep, 40), STRATA_OK);
        if (i % 3 == 0)
            receive(host, i + 1);
        v->r.btl->ops->disconnect(v->ep);
        if (i % 7 == 0)
            idle(host, 1);
        if (i % 11 == 0)
            idle(v, 64); /* unmaps: the next time it is a new entry */
        receive(host, i + 1);
    }
    ck_assert_uint_eq(mod(host)->count.violations, 0);
    end_close(v);
    end_close(host);
}
END_TEST

/* It leaves while its ring is full: there is no room to say good-bye. */
START_TEST(leaving_a_full_ring)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 2), *v = end_opened(b, 1, 2);
    for (int round = 0; round < 5; round++) {
        v->ep = rig_connect(&v->r, 0);
        for (uint32_t i = 0; i < 10; i++) {
            ck_assert_int_eq(end_send(v, v->ep, 4), STRATA_OK);
            receive(host, host->n + 1);
            idle(host, 1); /* rings are granted when nothing comes */
        }
        ck_assert_uint_ne(sm_peer(v->ep)->hot.word, ST_HOT_NONE);
        uint32_t n = 0, before = host->n;
        while (end_send(v, v->ep, 4) == STRATA_OK)
            n++;
        v->r.btl->ops->disconnect(v->ep);
        v->ep = rig_connect(&v->r, 0); /* a second name while the first is being read */
        ck_assert_int_eq(end_send(v, v->ep, 4), STRATA_OK);
        ck_assert_uint_eq(entries(host), 2);
        receive(host, before + n + 1);
        idle(host, 1);
        ck_assert_uint_eq(entries(host), 1);
        v->r.btl->ops->disconnect(v->ep);
        idle(host, 1);
    }
    ck_assert_uint_eq(mod(host)->count.violations, 0);
    ck_assert_uint_eq(mod(host)->hot.places[0].state, ST_HOT_FREE);
    end_close(v);
    end_close(host);
}
END_TEST

START_TEST(directory_full)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 2), *v[4];
    struct st_btl_endpoint *none = NULL;
    for (int i = 0; i < 4; i++)
        v[i] = end_opened(b, i + 1, 2);
    for (int i = 0; i < 3; i++)
        v[i]->ep = rig_connect(&v[i]->r, 0);
    ck_assert_int_eq(v[3]->r.btl->ops->connect(v[3]->r.btl, 0, &none), STRATA_ERR_UNREACHABLE);
    /* The newcomer asked for room once a millisecond, until the time-out. */
    ck_assert_uint_eq(atomic_load(&mod(host)->header->crowd), ATTACH_TIMEOUT_MS + 1);
    ck_assert_ptr_null(none);
    char why[256] = "";
    struct sm_peer *p = sm_peer_of(mod(v[3]), 0);
    ck_assert_int_eq(sm_enter(p, 0, why, sizeof why), STRATA_ERR_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(why, "btl_sm_late_peers"));
    /* The other way there is room; a control message waits for its turn. */
    host->ep = rig_connect(&host->r, 4);
    ck_assert_int_eq(end_send(host, host->ep, 9000), STRATA_OK);
    receive(v[3], 1);
    ck_assert_int_eq(sm_send_ctl(p, SM_CTL_GRANTS, NULL, 0), STRATA_ERR_AGAIN);
    v[1]->r.btl->ops->disconnect(v[1]->ep);
    idle(host, 1);
    v[3]->ep = rig_connect(&v[3]->r, 0);
    ck_assert_int_eq(end_send(v[3], v[3]->ep, 10), STRATA_OK);
    receive(host, 1);
    for (int i = 0; i < 4; i++)
        end_close(v[i]);
    end_close(host);
}
END_TEST

struct idler {
    struct end *e;
    _Atomic(bool) stop;
};

/* The owner sleeps until somebody asks for room. */
static void *idle_when_asked(void *arg)
{
    struct idler *i = arg;
    while (!atomic_load(&i->stop)) {
        if (atomic_load(&mod(i->e)->header->crowd))
            idle(i->e, 1);
        let_run();
    }
    return NULL;
}

/* Room is made while the newcomer waits. */
START_TEST(waits_for_room)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 1), *v[3];
    struct idler idler = {.e = host};
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        v[i] = end_new(b, i + 1, 1);
        v[i]->r.par.attach_timeout_ms = AWAIT_LIMIT_S * 1000;
        end_open(v[i]);
    }
    for (int i = 0; i < 2; i++)
        v[i]->ep = rig_connect(&v[i]->r, 0);
    v[0]->r.btl->ops->disconnect(v[0]->ep);
    ck_assert_int_eq(pthread_create(&t, NULL, idle_when_asked, &idler), 0);
    v[2]->ep = rig_connect(&v[2]->r, 0);
    ck_assert_uint_ge(atomic_load(&mod(host)->header->crowd), 1); /* it had to wait */
    atomic_store(&idler.stop, true);
    pthread_join(t, NULL);
    ck_assert_uint_eq(mod(host)->count.taken_back, 1);
    ck_assert_int_eq(end_send(v[2], v[2]->ep, 10), STRATA_OK);
    receive(host, 1);
    for (int i = 0; i < 3; i++)
        end_close(v[i]);
    end_close(host);
}
END_TEST

/* Entries that cannot be: a rank that does not exist, the owner's own, one of elsewhere, a second one of somebody. What
 * comes under their name is dropped; the peer that is there goes on. */
START_TEST(forged_entry)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 6), *v = end_opened(b, 1, 6);
    const uint32_t lies[] = {0x7fffffffu, 1, (1u << 20) + 7, 2, 0, SM_DIR_LEFT};
    struct sm_module *m = mod(host);
    v->ep = rig_connect(&v->r, 0);
    struct sm_peer *p = sm_peer(v->ep);
    ck_assert_int_eq(end_send(v, v->ep, 10), STRATA_OK);
    receive(host, 1);
    uint32_t mine = p->my_index, other = mine ? 0 : 1;
    atomic_store(&m->dir[other].name, lies[_i]);
    p->my_index = other;
    ck_assert_int_eq(end_send(v, v->ep, 10), STRATA_OK);
    p->my_index = mine;
    idle(host, 2);
    ck_assert_uint_eq(host->n, 1);
    ck_assert_uint_ge(m->count.violations, 1);
    ck_assert_int_eq(end_send(v, v->ep, 10), STRATA_OK);
    receive(host, 2);
    ck_assert_int_eq(host->r.failures, lies[_i] == 2 ? 1 : 0); /* rank 1 has two names: its fault */
    end_close(v);
    end_close(host);
}
END_TEST

/* An entry changes after it has been believed: noticed by the next sweep, its ring is not read any more. */
START_TEST(changed_entry)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 6), *v = end_opened(b, 1, 6), *w = end_opened(b, 2, 6);
    const uint32_t lies[] = {0, 3, SM_DIR_LEFT, 0x7fffffffu};
    struct sm_module *m = mod(host);
    v->ep = rig_connect(&v->r, 0);
    w->ep = rig_connect(&w->r, 0);
    for (uint32_t i = 1; i <= 10; i++) {
        ck_assert_int_eq(end_send(v, v->ep, 10), STRATA_OK);
        receive(host, i);
    }
    uint32_t mine = sm_peer(v->ep)->my_index;
    ck_assert_int_eq(sm_rank_at(m, mine), 1);
    atomic_store(&m->dir[mine].name, lies[_i]);
    atomic_fetch_add(&m->header->leavers, 1);
    idle(host, 2);
    ck_assert_int_eq(host->r.failures, 1);
    ck_assert_int_eq(host->r.last_failure, STRATA_ERR_PROTOCOL);
    ck_assert_uint_eq(m->n_order, 0);
    for (uint32_t i = 11; i <= 20; i++) {
        ck_assert_int_eq(end_send(w, w->ep, 10), STRATA_OK);
        receive(host, i);
    }
    end_close(v);
    end_close(w);
    end_close(host);
}
END_TEST

/* Killed without a word: its entry, its memory and what was on the way to it are had back when they are needed. */
START_TEST(killed)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 2);
    for (int i = 1; i <= 12; i++) {
        int rank = 16 * i + 1 + i % 8;
        atomic_store(&b->ready[rank % RIG_MAX], 0);
        pid_t child = fork();
        if (child == 0) {
            struct end *v = end_opened(b, rank, 2);
            v->ep = rig_connect(&v->r, 0);
            for (int k = 0; k < 3; k++)
                RIG_CHECK(end_send(v, v->ep, 8000) == STRATA_OK);
            if (i % 2) { /* with a claimed slot */
                uint64_t full;
                struct sm_peer *p = sm_peer(v->ep);
                RIG_CHECK(sm_queue_claim(&p->header->tail, p->slots, p->n_slots, p->my_index, &full));
            }
            for (;;)
                pause();
        }
        host->n = 0;
        receive(host, 3);
        host->ep = rig_connect(&host->r, rank);
        ck_assert_int_eq(end_send(host, host->ep, 16000), STRATA_OK); /* a cell that nobody will read */
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        idle(host, 2);
        ck_assert_uint_eq(entries(host), (uint32_t)(i - 1) % 3 + 1); /* kept until somebody asks for room */
        if (i % 3 == 0) {                                            /* the directory is full: the next one will ask */
            atomic_fetch_add(&mod(host)->header->crowd, 1);
            mod(host)->newcomers = 1000;
            idle(host, 4);
            ck_assert_uint_eq(entries(host), 0);
            ck_assert_int_eq(mappings(), 1);
            ck_assert(sm_cells_idle(mod(host)));
            ck_assert_int_eq(end_send(host, host->ep, 16), STRATA_ERR_PEER);
        }
    }
    end_close(host);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("late peers");
    TCase *t = tcase_create("late peers");

    cycles = (int)test_quick_form(test_sanitized() ? SANITIZED : SHORT, FULL);
    test_form_print(0, (unsigned long)cycles, FULL, "peers that come and go");
    tcase_add_test(t, opens_alone);
    tcase_add_test(t, late_peer_sends_first);
    tcase_add_test(t, late_peer_is_spoken_to_first);
    tcase_add_loop_test(t, many_come_and_go, 0, 3);
    tcase_add_test(t, reported_as_it_was);
    tcase_add_test(t, reconnecting);
    tcase_add_test(t, leaving_a_full_ring);
    tcase_add_test(t, directory_full);
    tcase_add_test(t, waits_for_room);
    tcase_add_loop_test(t, forged_entry, 0, 6);
    tcase_add_loop_test(t, changed_entry, 0, 4);
    tcase_add_test(t, killed);
    suite_add_tcase(s, t);
    return run_suite(s);
}

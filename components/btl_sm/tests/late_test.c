/* Peers that nobody knew of at the start: they come, speak or are spoken to first, and go; their entries in the
 * directory and their memory are used again. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include "rig.h"
#include "support/run_suite.h"

struct end {
    struct rig_rank r;
    struct st_btl_endpoint *ep; /* of the other end */
    uint32_t n, bad;
};

static enum st_deliver deliver(void *arg, const struct st_frag *f)
{
    struct end *e = arg;
    uint32_t from;
    memcpy(&from, f->hdr, sizeof from);
    e->bad += f->rank != (int)from;
    for (uint32_t i = 0; i < f->len; i++)
        e->bad += ((const uint8_t *)f->data)[i] != (uint8_t)(i + from);
    e->n++;
    return ST_DONE;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct end *end_new(struct rig_board *b, int rank, int64_t late)
{
    struct end *e = calloc(1, sizeof *e);
    rig_init_alone(&e->r, b, rank);
    e->r.par.late_peers = late;
    e->r.par.promote_after = 4;
    e->r.par.attach_timeout_ms = 50;
    return e;
}
static void end_open(struct end *e)
{
    rig_open(&e->r);
    e->r.btl->am[ST_AM_TEST].fn = deliver;
    e->r.btl->am[ST_AM_TEST].arg = e;
}
static struct end *end_opened(struct rig_board *b, int rank, int64_t late)
{
    struct end *e = end_new(b, rank, late);
    end_open(e);
    return e;
}
static void end_close(struct end *e)
{
    rig_close(&e->r);
    free(e);
}
static int end_send(struct end *e, struct st_btl_endpoint *ep, uint32_t len)
{
    uint32_t from = (uint32_t)e->r.rte.rank;
    uint8_t data[16384];
    for (uint32_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i + from);
    return e->r.btl->ops->send(ep, ST_AM_TEST, &from, sizeof from, data, len);
}
/* Enough empty polls that the seldom looks are made. */
static void idle(struct end *e, int looks)
{
    for (int i = 0; i < looks * 1024; i++)
        e->r.btl->ops->progress(e->r.btl);
}
static void receive(struct end *e, uint32_t n)
{
    int64_t end = now_ms() + 20000;
    for (int i = 1; e->n < n && ((i & 1023) || now_ms() < end); i++)
        e->r.btl->ops->progress(e->r.btl);
    ck_assert_uint_eq(e->n, n);
    ck_assert_uint_eq(e->bad, 0);
}
static struct sm_module *mod(struct end *e)
{
    return sm_module(e->r.btl);
}
static uint32_t entries(struct end *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < mod(e)->n_dir; i++)
        n += atomic_load(&mod(e)->dir[i].name) != 0;
    return n;
}
static int mappings(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "strata-sm") != NULL;
    if (f)
        fclose(f);
    return n;
}

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
    ck_assert_uint_ne(sm_peer(young->ep)->granted, SM_NO_GRANT);
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
    const int cycles = 2000;
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
    ck_assert_uint_eq(mod(host)->n_revoked, 0);
    for (uint32_t i = 0; i < mod(host)->n_rings; i++)
        ck_assert_uint_eq(mod(host)->rings[i].state, SM_RING_FREE);
    if (_i == 2) { /* a late control message to who has ended: no error */
        ck_assert_int_eq(end_send(host, host->ep, 16), STRATA_OK);
        ck_assert_int_eq(host->r.btl->ops->get(host->ep, b, 0, NULL, 8, NULL, NULL), STRATA_ERR_UNSUPPORTED);
        char *text = host->r.btl->ops->describe(host->r.btl, host->ep);
        ck_assert_ptr_nonnull(strstr(text, "ended"));
        free(text);
    }
    ck_assert_int_eq(host->r.failures, 0);
    end_close(host);
}
END_TEST

/* The same two, again and again, without the owner having time to tidy. */
START_TEST(reconnecting)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 2), *v = end_opened(b, 1, 2);
    for (uint32_t i = 0; i < 2000; i++) {
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
        }
        ck_assert_uint_ne(sm_peer(v->ep)->granted, SM_NO_GRANT);
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
    ck_assert_uint_eq(mod(host)->rings[0].state, SM_RING_FREE);
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
    int64_t t0 = now_ms();
    ck_assert_int_eq(v[3]->r.btl->ops->connect(v[3]->r.btl, 0, &none), STRATA_ERR_UNREACHABLE);
    ck_assert_int_lt(now_ms() - t0, 10000);
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

static void *keep_idle(void *arg)
{
    struct end *e = arg;
    for (int i = 0; i < 200; i++) {
        idle(e, 1);
        usleep(1000);
    }
    return NULL;
}

/* Room is made while the newcomer waits. */
START_TEST(waits_for_room)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 1), *v[3];
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        v[i] = end_new(b, i + 1, 1);
        v[i]->r.par.attach_timeout_ms = 20000;
        end_open(v[i]);
    }
    for (int i = 0; i < 2; i++)
        v[i]->ep = rig_connect(&v[i]->r, 0);
    v[0]->r.btl->ops->disconnect(v[0]->ep);
    ck_assert_int_eq(pthread_create(&t, NULL, keep_idle, host), 0);
    v[2]->ep = rig_connect(&v[2]->r, 0);
    ck_assert_int_eq(end_send(v[2], v[2]->ep, 10), STRATA_OK);
    pthread_join(t, NULL);
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
        ck_assert_uint_le(entries(host), 3);
        if (entries(host) == 3) { /* the next one will ask for room */
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
    _Atomic(int) *stop;
    uint32_t sent, refused;
};

/* Comes, sends, goes, as long as the host is there. */
static void *visits(void *arg)
{
    struct visitor *v = arg;
    while (!atomic_load(v->stop)) {
        struct st_btl_endpoint *ep = NULL;
        int rc = v->e->r.btl->ops->connect(v->e->r.btl, 0, &ep);
        if (rc != STRATA_OK) {
            RIG_CHECK(rc == STRATA_ERR_UNREACHABLE);
            v->refused++;
            idle(v->e, 1);
            continue;
        }
        for (int k = 0; k < 20; k++) {
            while ((rc = end_send(v->e, ep, k == 5 ? 8000 : 24)) == STRATA_ERR_AGAIN && !atomic_load(v->stop))
                idle(v->e, 1);
            v->sent += rc == STRATA_OK;
            if (rc != STRATA_OK)
                break;
        }
        v->e->r.btl->ops->disconnect(ep);
        idle(v->e, v->sent % 3 ? 1 : 64);
    }
    return NULL;
}

#define VISITORS 5
/* More visitors than places, all the time; at the end the host closes while they still come. */
START_TEST(crowd_at_the_door)
{
    struct rig_board *b = rig_board(1);
    struct end *host = end_opened(b, 0, 3);
    struct visitor v[VISITORS];
    pthread_t t[VISITORS];
    _Atomic(int) stop = 0;
    uint32_t sent = 0;
    for (int i = 0; i < VISITORS; i++) {
        v[i] = (struct visitor){.e = end_opened(b, i + 1, 3), .stop = &stop};
        ck_assert_int_eq(pthread_create(&t[i], NULL, visits, &v[i]), 0);
    }
    int64_t end = now_ms() + 1500;
    while (now_ms() < end)
        idle(host, 1);
    ck_assert_uint_eq(host->bad, 0);
    ck_assert_uint_gt(host->n, 100);
    ck_assert_uint_eq(mod(host)->count.violations, 0);
    if (_i == 0) {
        atomic_store(&stop, 1);
        for (int i = 0; i < VISITORS; i++) {
            pthread_join(t[i], NULL);
            sent += v[i].sent;
        }
        receive(host, sent);
        idle(host, 64);
        ck_assert_uint_eq(entries(host), 0);
        for (uint32_t i = 0; i < mod(host)->n_rings; i++)
            ck_assert_uint_eq(mod(host)->rings[i].state, SM_RING_FREE);
        ck_assert_uint_eq(mod(host)->count.violations, 0);
        end_close(host);
    } else {
        end_close(host); /* in the middle of it all */
        usleep(100000);
        atomic_store(&stop, 1);
        for (int i = 0; i < VISITORS; i++)
            pthread_join(t[i], NULL);
    }
    for (int i = 0; i < VISITORS; i++)
        end_close(v[i].e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("late peers");
    TCase *t = tcase_create("late peers");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, opens_alone);
    tcase_add_test(t, late_peer_sends_first);
    tcase_add_test(t, late_peer_is_spoken_to_first);
    tcase_add_loop_test(t, many_come_and_go, 0, 3);
    tcase_add_test(t, reconnecting);
    tcase_add_test(t, leaving_a_full_ring);
    tcase_add_test(t, directory_full);
    tcase_add_test(t, waits_for_room);
    tcase_add_loop_test(t, forged_entry, 0, 6);
    tcase_add_loop_test(t, changed_entry, 0, 4);
    tcase_add_test(t, killed);
    tcase_add_test(t, claimed_at_once);
    tcase_add_loop_test(t, crowd_at_the_door, 0, 2);
    suite_add_tcase(s, t);
    return run_suite(s);
}

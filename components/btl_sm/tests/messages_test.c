/* Messages of all sizes between ranks: every byte arrives once, by whatever path. */
/* starts first */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rig.h"
#include "support/form.h"
#include "support/let_run.h"
#include "support/run_suite.h"
#include "support/world.h"

enum { SANITIZED = 300, SHORT = 1000, FULL = 4000 };
static uint32_t n_messages; /* from each rank to each other */

struct wire {
    uint32_t sequence, length;
    uint64_t sum;
};

struct counter {
    struct rig_rank *rig;
    uint32_t n_ranks;
    uint32_t got[RIG_MAX];
    uint8_t *seen[RIG_MAX];
    uint32_t bad;
};

static uint64_t sum_of(const uint8_t *p, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        seed = seed * 31 + p[i];
    return seed;
}

static void deliver(void *arg, const struct st_frag *f)
{
    struct counter *c = arg;
    struct wire w;
    if (f->hdr_len != sizeof w) {
        c->bad++;
        return;
    }
    memcpy(&w, f->hdr, sizeof w);
    if (w.length != f->len || w.sequence >= n_messages || c->seen[f->rank][w.sequence]++ ||
        sum_of(f->data, f->len, w.sequence) != w.sum)
        c->bad++;
    c->got[f->rank]++;
}

static uint32_t length_of(uint32_t i, uint32_t max)
{
    static const uint32_t some[] = {0, 1, 8, 39, 40, 41, 63, 64, 65, 200, 215, 216, 217, 1000, 4096, 8191};
    uint32_t n = some[(i * 7 + i / 16) % 16];
    return i % 97 == 0 || n > max ? max : n;
}

static void run_rank(struct rig_rank *r)
{
    int n = r->board->n, me = r->rte.rank;
    struct counter c = {.rig = r, .n_ranks = (uint32_t)n};
    struct st_btl_endpoint *ep[RIG_MAX] = {0};
    uint32_t sent[RIG_MAX] = {0}, left = (uint32_t)(n - 1), have = 0;
    uint8_t *data = malloc(r->btl->max_send);

    for (int i = 0; i < n; i++)
        c.seen[i] = calloc(n_messages, 1);
    r->btl->am[ST_AM_TEST].fn = deliver;
    r->btl->am[ST_AM_TEST].arg = &c;
    for (int i = 0; i < n; i++)
        if (i != me)
            ep[i] = rig_connect(r, i);
    while (left || have < (uint32_t)(n - 1) * n_messages) {
        for (int i = 0; i < n; i++) {
            struct wire w;
            int rc;
            if (i == me || sent[i] == n_messages)
                continue;
            w.sequence = sent[i];
            w.length = length_of(sent[i], r->btl->max_send);
            for (uint32_t k = 0; k < w.length; k++)
                data[k] = (uint8_t)(k * 7 + sent[i] + (uint32_t)me);
            w.sum = sum_of(data, w.length, w.sequence);
            if (sent[i] % 3 == 0) {
                strata_data_t d = {.kind = STRATA_IOVEC, .length = w.length};
                struct strata_iovec v[2] = {{data, w.length / 3}, {data + w.length / 3, w.length - w.length / 3}};
                struct st_payload p = {.data = &d, .offset = 0, .length = w.length};
                d.u.iov.v = v;
                d.u.iov.n = 2;
                rc = r->btl->ops->send_payload(ep[i], ST_AM_TEST, &w, sizeof w, &p);
            } else {
                rc = r->btl->ops->send(ep[i], ST_AM_TEST, &w, sizeof w, data, w.length);
            }
            if (rc == STRATA_OK && ++sent[i] == n_messages)
                left--;
            else
                ck_assert(rc == STRATA_OK || rc == STRATA_ERR_AGAIN);
        }
        if (r->btl->ops->progress(r->btl) == 0)
            let_run();
        have = 0;
        for (int i = 0; i < n; i++)
            have += c.got[i];
    }
    ck_assert_uint_eq(c.bad, 0);
    rig_fence(r);
    ck_assert_int_eq(r->failures, 0);
    for (int i = 0; i < n; i++)
        free(c.seen[i]);
    free(data);
}

static void *thread_rank(void *arg)
{
    struct rig_rank *r = arg;
    rig_open(r);
    run_rank(r);
    rig_close(r);
    return NULL;
}

static void run_threads(int n, void (*tweak)(struct sm_params *))
{
    struct rig_board *b = rig_board(n);
    struct rig_rank *r = calloc((size_t)n, sizeof *r);
    pthread_t t[RIG_MAX];
    for (int i = 0; i < n; i++) {
        rig_init(&r[i], b, i);
        if (tweak)
            tweak(&r[i].par);
        ck_assert_int_eq(pthread_create(&t[i], NULL, thread_rank, &r[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    free(r);
    munmap(b, sizeof *b);
}

static void no_rings(struct sm_params *p)
{
    p->rings = 0;
    p->cells = 2;
    p->queue_slots = 8;
}
static void tiny_rings(struct sm_params *p)
{
    p->ring_slots = 8;
    p->max_send = 1024;
    p->ring_data = 4096;
    p->promote_after = 1;
}
static void contested_rings(struct sm_params *p)
{
    p->rings = 1; /* three peers for one ring: it is given, taken back, given to another */
    p->promote_after = 2;
    p->promote_window = 16;
}
static void by_socket(struct sm_params *p)
{
    p->attach = SM_ATTACH_SOCKET;
}
static void by_proc(struct sm_params *p)
{
    p->attach = SM_ATTACH_PROC;
}
static void little_memory(struct sm_params *p)
{
    p->memory_limit = 80 << 10; /* the base, two cells, and little for a ring or none */
}

static void (*const tweaks[])(struct sm_params *) = {NULL,    no_rings,  tiny_rings,   contested_rings,
                                                     by_proc, by_socket, little_memory};

START_TEST(two_threads)
{
    run_threads(2, tweaks[_i]);
}
END_TEST

START_TEST(four_threads)
{
    run_threads(4, tweaks[_i]);
}
END_TEST

START_TEST(processes)
{
    struct rig_board *b = rig_board(3);
    struct rig_rank r;
    pid_t child[2];
    int rank = 0;
    for (int i = 0; i < 2; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            rank = i + 1;
            break;
        }
    }
    rig_init(&r, b, rank);
    if (tweaks[_i])
        tweaks[_i](&r.par);
    thread_rank(&r);
    if (rank)
        _exit(0);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(child[i], &status, 0), child[i]);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("messages");
    TCase *t = tcase_create("all paths");
    int n = (int)(sizeof tweaks / sizeof tweaks[0]);

    n_messages = (uint32_t)test_quick_form(test_sanitized() ? SANITIZED : SHORT, FULL);
    test_form_print(0, n_messages, FULL, "messages from each rank to each other");
    tcase_add_loop_test(t, two_threads, 0, n);
    tcase_add_loop_test(t, four_threads, 0, n);
    tcase_add_loop_test(t, processes, 0, n);
    suite_add_tcase(s, t);
    return run_suite(s);
}

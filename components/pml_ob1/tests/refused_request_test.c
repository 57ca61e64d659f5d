/* Rendezvous where one end cannot do its part: its memory cannot be registered, or there is no memory for a task. Both
 * ends get done, and what can be moved in another way is moved. */
#include <check.h>
#include <time.h>
#include <strata/sdk/btl_rdma.h>
#include <strata/sdk/pml.h>
#include "ob1.h"
#include "support/pattern.h"
#include "support/run_suite.h"
#include "support/world.h"
#include "wire.h"

enum { LENGTH = 100000, PATIENCE_S = 240 };

/* Stands in for the registrations and puts of rank 0, which sends. */
static struct {
    struct st_btl_rdma rdma;
    const struct st_btl_rdma *real;
    int refuse; /* so many registrations are refused */
    int rc;     /* with this */
    int puts;
} t;

static int refusing_reg(struct st_btl *btl, void *base, size_t len, enum st_btl_use use, struct st_btl_reg *out)
{
    if (t.refuse > 0 && use == ST_BTL_SOURCE) {
        t.refuse--;
        return t.rc;
    }
    return t.real->reg(btl, base, len, use, out);
}

static int counted_put(struct st_btl_endpoint *ep, const void *local, uint64_t remote, const uint8_t *key, size_t len,
                       struct st_btl_reg *reg, struct st_btl_op *op)
{
    t.puts++;
    return t.real->put(ep, local, remote, key, len, reg, op);
}

static void stand_in(struct st_btl *btl)
{
    t.real = btl->rdma;
    t.rdma = *btl->rdma;
    t.rdma.reg = refusing_reg;
    t.rdma.put = counted_put;
    btl->rdma = &t.rdma;
}

/* The result of a request that ends: one that does not is found out before the watchdog does. */
static int end_of(struct tw_rank *r, strata_request_t *q)
{
    time_t begin = time(NULL);
    int done = 0, rc = STRATA_OK;

    while (!done) {
        rc = strata_test(&q, &done, NULL);
        CHECK_MSG(time(NULL) - begin < PATIENCE_S, "the request of rank %d does not end", r->rank);
    }
    return rc;
}

/* One message from rank 0 to rank 1. */
static int one(struct tw_rank *r, char *data, int tag)
{
    strata_request_t *q;

    if (r->rank == 0) {
        pattern_fill(data, LENGTH, (uint64_t)tag);
        CHECK_OK(strata_isend(r->comm, data, LENGTH, 1, tag, &q));
    } else {
        memset(data, 0, LENGTH);
        CHECK_OK(strata_irecv(r->comm, data, LENGTH, 0, tag, &q));
    }
    int rc = end_of(r, q);
    if (rc == STRATA_OK && r->rank == 1)
        CHECK_EQ(pattern_check(data, LENGTH, (uint64_t)tag), -1);
    return rc;
}

/* The sender's memory is not there: its send fails at the first piece, while requests for the next ones are under way.
 */
static void not_there(struct tw_rank *r)
{
    static char data[2][LENGTH];
    struct st_btl *btl = r->comm->worker->bml->btls[0];

    if (r->rank == 0)
        stand_in(btl);
    for (int round = 0; round < 20; round++) {
        if (r->rank == 0) {
            t.refuse = 1;
            t.rc = STRATA_ERR_ARG;
        }
        int rc = one(r, data[r->rank], 1);
        CHECK(r->rank == 0 ? rc == STRATA_ERR_ARG : rc != STRATA_OK);
        tw_quiesce(r);
        if (r->rank == 0)
            t.refuse = 0;
        CHECK_OK(one(r, data[r->rank], 2));
        tw_quiesce(r);
    }
    if (r->rank == 0)
        btl->rdma = t.real;
}

START_TEST(requests_for_a_failed_send_are_answered)
{
    static const char *const settings[] = {
        "btl=shuffle btl_shuffle_needs_reg=1 btl_shuffle_get=0 btl_shuffle_rdma_pipeline=4k btl_shuffle_window=1 "
        "btl_shuffle_delay=0 btl_shuffle_again_percent=0",
        "btl=shuffle btl_shuffle_needs_reg=1 btl_shuffle_get=0 btl_shuffle_rdma_pipeline=4k"};

    tw_run(&(struct tw_options){.n = 2, .settings = settings[_i], .quiet = true}, not_there, NULL);
}
END_TEST

/* The sender's memory cannot be registered: this message goes by fragments, the next one is put again. */
static void not_registered(struct tw_rank *r)
{
    static char data[2][LENGTH];
    struct st_btl *btl = r->comm->worker->bml->btls[0];
    const struct ob1_peer *peer;

    if (r->rank == 0)
        stand_in(btl);
    for (int round = 0; round < 5; round++) {
        if (r->rank == 0) {
            t.refuse = LENGTH;
            t.rc = round % 2 ? STRATA_ERR_UNSUPPORTED : STRATA_ERR_NOMEM;
            t.puts = 0;
        }
        CHECK_OK(one(r, data[r->rank], 1));
        tw_quiesce(r);
        if (r->rank == 0) {
            CHECK_EQ(t.puts, 0);
            t.refuse = 0;
        }
        CHECK_OK(one(r, data[r->rank], 2));
        tw_quiesce(r);
        if (r->rank == 0)
            CHECK(t.puts > 0);
        peer = ob1_peer_of(st_worker_peer_known(r->comm->worker, !r->rank));
        CHECK_EQ(peer->lost_caps, 0);
    }
    if (r->rank == 0)
        btl->rdma = t.real;
}

/* The sender has failed for want of memory at the receiver, which is no reason to ask it for anything. */
static void failed_for_memory(struct tw_rank *r)
{
    static char data[2][LENGTH];
    strata_request_t *q;

    if (r->rank == 0)
        CHECK_OK(strata_isend(r->comm, data[0], LENGTH, 1, 1, &q));
    else
        CHECK_OK(strata_irecv(r->comm, data[1], LENGTH, 0, 1, &q));
    if (r->rank == 0) {
        CHECK_OK(strata_probe(r->comm, 1, 2, NULL)); /* announced */
        tw_barrier(r);                               /* and no request of the receiver is answered */
        tw_barrier(r);
        CHECK_OK(strata_host_peer_failed(r->s, 1, "it has given us up"));
        CHECK_EQ(end_of(r, q), STRATA_ERR_PEER);
    } else {
        const struct ob1 *pml = (const struct ob1 *)r->comm->pml;
        while (pml->by_protocol[OB1_P_PUT] == 0)
            strata_progress(r->s);
        CHECK_OK(strata_send(r->comm, data[1], 8, 0, 2));
        tw_barrier(r);
        st_worker_peer_failed(r->comm->worker, 0, STRATA_ERR_NOMEM, "the test says so");
        CHECK_EQ(end_of(r, q), STRATA_ERR_NOMEM);
        tw_barrier(r);
    }
    tw_barrier(r);
}

START_TEST(peer_fails_for_want_of_memory)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle btl_shuffle_needs_reg=1 btl_shuffle_get=0 "
                                            "btl_shuffle_rdma_pipeline=4k btl_shuffle_async_percent=100 "
                                            "btl_shuffle_piece=10",
                                .quiet = true},
           failed_for_memory, NULL);
}
END_TEST

START_TEST(memory_of_one_message_is_not_registered)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle btl_shuffle_needs_reg=1 btl_shuffle_get=0 "
                                            "btl_shuffle_rdma_pipeline=4k"},
           not_registered, NULL);
}
END_TEST

/* The receiver's memory for tasks ends with the one that begins the message: fragments need none. */
static void no_tasks(struct tw_rank *r)
{
    static char data[2][LENGTH];
    struct ob1 *pml = (struct ob1 *)r->comm->pml;
    void *taken = NULL, *next;

    CHECK_OK(one(r, data[r->rank], 1)); /* connected, and tasks have been made */
    tw_quiesce(r);
    if (r->rank == 1) {
        pml->tasks.max = pml->tasks.made;
        while ((next = st_slab_get(&pml->tasks)) != NULL) {
            *(void **)next = taken;
            taken = next;
        }
        CHECK(taken != NULL);
        if (taken) {
            next = *(void **)taken;
            st_slab_put(&pml->tasks, taken);
            taken = next;
        }
    }
    tw_quiesce(r);
    CHECK_OK(one(r, data[r->rank], 2));
    tw_quiesce(r);
    for (; taken; taken = next) {
        next = *(void **)taken;
        st_slab_put(&pml->tasks, taken);
    }
    pml->tasks.max = 0;
    CHECK_OK(one(r, data[r->rank], 3));
}

START_TEST(memory_for_tasks_ends)
{
    static const char *const protocol[] = {"get", "put", "split"};
    char settings[100];

    snprintf(settings, sizeof(settings), "btl=shuffle pml_ob1_rndv=%s", protocol[_i]);
    tw_run(&(struct tw_options){.n = 2, .settings = settings}, no_tasks, NULL);
}
END_TEST

/* A request to put that comes by a module which is none of the sender's paths: its key would be for another device. */
static void other_module(struct tw_rank *r)
{
    static char source[LENGTH], target[LENGTH], elsewhere[LENGTH];
    struct st_btl *const *btls = r->comm->worker->bml->btls;
    strata_request_t *q;
    int x = 1;

    if (r->rank == 0) {
        stand_in(btls[0]);
        pattern_fill(source, LENGTH, 7);
        CHECK_OK(strata_send(r->comm, &x, sizeof(x), 1, 1)); /* connected */
        CHECK_OK(strata_isend(r->comm, source, LENGTH, 1, 2, &q));
        for (uint64_t name = 0; name < 32; name++) {
            struct wire_put h = {.request = {.type = OB1_PUT, .id = (name / 4 + 1) << 32 | name % 4, .length = LENGTH},
                                 .address = (uint64_t)(uintptr_t)elsewhere};
            struct st_frag frag = {.hdr = &h, .hdr_len = sizeof(h), .rank = 1, .btl = btls[1]};
            btls[1]->am[ST_AM_PML].fn(btls[1]->am[ST_AM_PML].arg, &frag);
        }
        CHECK_EQ(t.puts, 0);
        CHECK_OK(strata_wait(&q, NULL));
        btls[0]->rdma = t.real;
    } else {
        CHECK_OK(strata_recv(r->comm, &x, sizeof(x), 0, 1, NULL));
        CHECK_OK(strata_recv(r->comm, target, LENGTH, 0, 2, NULL));
        CHECK_EQ(pattern_check(target, LENGTH, 7), -1);
    }
    tw_quiesce(r);
}

START_TEST(put_asked_by_another_module)
{
    tw_run(&(struct tw_options){.n = 2,
                                .settings = "btl=shuffle btl_shuffle_rails=2 btl_shuffle_again_percent=0 "
                                            "bml_r2_max_paths=1 pml_ob1_rndv=get",
                                .quiet = true},
           other_module, NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ob1_refused_request");
    TCase *tc = tcase_create("refused_request");
    tcase_set_timeout(tc, 0);
    tcase_add_loop_test(tc, requests_for_a_failed_send_are_answered, 0, 2);
    tcase_add_test(tc, memory_of_one_message_is_not_registered);
    tcase_add_test(tc, peer_fails_for_want_of_memory);
    tcase_add_loop_test(tc, memory_for_tasks_ends, 0, 3);
    tcase_add_test(tc, put_asked_by_another_module);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

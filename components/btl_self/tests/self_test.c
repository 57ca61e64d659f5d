/* btl_self alone: records of all sizes through the ring, back-pressure, sending from inside deliver, RDMA, puts with a
 * notice. */
/* one thread */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/btl_rdma.h>
#include "btl_self.h"
#include "framework/base/context.h"
#include "support/pattern.h"
#include "support/run_suite.h"

static strata_t context;
static struct st_btl *btl;
static struct st_btl_endpoint *ep;
static unsigned long arrived, answered;
static bool answer;

static void deliver(void *arg, const struct st_frag *frag)
{
    uint64_t seed;
    ck_assert_ptr_eq(arg, &arrived);
    ck_assert_int_eq(frag->rank, 5);
    ck_assert_uint_eq((uintptr_t)frag->hdr % 16, 0);
    ck_assert_uint_ge(frag->hdr_len, sizeof(seed));
    memcpy(&seed, frag->hdr, sizeof(seed));
    ck_assert_uint_eq(seed, arrived);
    ck_assert_int_eq(pattern_check(frag->data, frag->len, seed), -1);
    arrived++;
    if (answer) {
        /* Room is made only when deliver returns: a full ring refuses, nothing is overwritten. */
        seed = arrived + answered;
        answered += 0 == ep->btl->ops->send(ep, ST_AM_STREAM, &seed, sizeof(seed), NULL, 0);
    }
}

static void deliver_answer(void *arg, const struct st_frag *frag)
{
    (void)arg;
    ck_assert_uint_eq(frag->hdr_len, 8);
    ck_assert_uint_eq(frag->len, 0);
    answered--;
}

static void setup(void)
{
    struct btl_self_config config = {.ring = 5000, .eager_limit = 1 << 20};
    ck_assert_int_eq(btl_self_make(&context, NULL, &config, 5, &btl), STRATA_OK);
    ck_assert_uint_eq(btl->max_send, 2048);
    ck_assert_uint_eq(btl->eager_limit, 2048);
    btl->am[ST_AM_PML].fn = deliver;
    btl->am[ST_AM_PML].arg = &arrived;
    btl->am[ST_AM_STREAM].fn = deliver_answer;
    ck_assert(btl->caps & ST_BTL_PASSIVE);
    ck_assert_int_eq(btl->ops->reach(btl, 4), STRATA_ERR_UNREACHABLE);
    ck_assert_int_eq(btl->ops->connect(btl, 4, &ep), STRATA_ERR_UNREACHABLE);
    ck_assert_int_eq(btl->ops->reach(btl, 5), STRATA_OK);
    ck_assert_int_eq(btl->ops->connect(btl, 5, &ep), STRATA_OK);
    arrived = answered = 0;
    answer = false;
}

static void teardown(void)
{
    btl->ops->disconnect(ep);
    btl->ops->close(btl);
}

static int send(uint64_t seed, uint32_t hdr_len, uint32_t len, bool packed)
{
    char hdr[ST_BTL_HDR_MAX] = {0}, data[2048 + 7];
    strata_data_t d = {.kind = STRATA_CONTIGUOUS, .length = len + 7, .u.buffer = data};
    struct st_payload window = {&d, 7, len};
    memcpy(hdr, &seed, sizeof(seed));
    pattern_fill(data + 7, len, seed);
    return packed ? btl->ops->send_payload(ep, ST_AM_PML, hdr, hdr_len, &window)
                  : btl->ops->send(ep, ST_AM_PML, hdr, hdr_len, data + 7, len);
}

START_TEST(all_sizes)
{
    uint64_t sent = 0;
    for (uint32_t len = 0; len <= 2048; len += len < 70 ? 1 : 61) {
        for (uint32_t hdr_len = 8; hdr_len <= ST_BTL_HDR_MAX; hdr_len += 8) {
            while (send(sent, hdr_len, len, sent % 2) == STRATA_ERR_AGAIN)
                ck_assert_int_gt(btl->ops->progress(btl), 0);
            sent++;
        }
    }
    while (btl->ops->progress(btl) > 0)
        ;
    ck_assert_uint_eq(arrived, sent);
}
END_TEST

START_TEST(full_refuses_and_order_holds)
{
    struct st_btl_wait w;
    uint64_t sent = 0;
    ck_assert_int_eq(btl->ops->arm(btl, &w), STRATA_OK);
    for (int round = 0; round < 1000; round++) {
        while (send(sent, 16, (uint32_t)(sent * 37 % 2049), false) == STRATA_OK)
            sent++;
        ck_assert_int_eq(btl->ops->arm(btl, &w), STRATA_ERR_AGAIN);
        ck_assert_int_gt(btl->ops->progress(btl), 0);
        ck_assert_uint_eq(arrived, sent);
        btl->ops->disarm(btl);
    }
}
END_TEST

START_TEST(sending_inside_deliver)
{
    uint64_t sent = 0;
    answer = true;
    for (int round = 0; round < 300; round++) {
        while (send(sent, 16, 100, false) == STRATA_OK)
            sent++;
        btl->ops->progress(btl);
        ck_assert_uint_eq(arrived, sent);
        ck_assert_uint_gt(answered, 0);
        btl->ops->progress(btl);
        ck_assert_uint_eq(answered, 0);
    }
}
END_TEST

START_TEST(rdma)
{
    char a[1000], b[1000];
    pattern_fill(a, sizeof(a), 1);
    ck_assert_int_eq(btl->rdma->get(ep, b, (uint64_t)(uintptr_t)a, NULL, sizeof(a), NULL, NULL), 1);
    ck_assert_int_eq(pattern_check(b, sizeof(b), 1), -1);
    pattern_fill(a, sizeof(a), 2);
    ck_assert_int_eq(btl->rdma->put(ep, a, (uint64_t)(uintptr_t)b, NULL, sizeof(a), NULL, NULL), 1);
    ck_assert_int_eq(pattern_check(b, sizeof(b), 2), -1);
}
END_TEST

static struct {
    char bytes[1000];
    uint32_t n, expected;
} noticed;

/* The data of the last put is there; the earlier ones have been overwritten. */
static void deliver_notice(void *arg, const struct st_frag *frag)
{
    uint32_t word;
    ck_assert_ptr_eq(arg, &noticed);
    ck_assert_uint_eq(frag->hdr_len, sizeof(word));
    ck_assert_uint_eq(frag->len, 0);
    ck_assert_int_eq(frag->rank, 5);
    memcpy(&word, frag->hdr, sizeof(word));
    ck_assert_uint_eq(word, 0xf0000000u + noticed.n);
    ck_assert_int_eq(pattern_check(noticed.bytes, sizeof(noticed.bytes), noticed.expected - 1), -1);
    noticed.n++;
}

static int put_notify(uint32_t i)
{
    char local[sizeof(noticed.bytes)];
    pattern_fill(local, sizeof(local), i);
    return btl->rdma->put_notify(ep, local, (uint64_t)(uintptr_t)noticed.bytes, NULL, sizeof(local), NULL,
                                 0xf0000000u + i, NULL);
}

START_TEST(put_with_notice)
{
    uint32_t sent = 0;
    int rc;
    memset(&noticed, 0, sizeof(noticed));
    btl->am[ST_AM_NOTICE].fn = deliver_notice;
    btl->am[ST_AM_NOTICE].arg = &noticed;
    for (int round = 0; round < 100; round++) {
        while ((rc = put_notify(sent)) == 1)
            sent++;
        ck_assert_int_eq(rc, STRATA_ERR_AGAIN);
        noticed.expected = sent; /* what was refused has written nothing */
        ck_assert_int_eq(pattern_check(noticed.bytes, sizeof(noticed.bytes), sent - 1), -1);
        ck_assert_uint_lt(noticed.n, sent); /* not from inside put_notify */
        ck_assert_int_gt(btl->ops->progress(btl), 0);
        ck_assert_uint_eq(noticed.n, sent);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("btl_self");
    TCase *tc = tcase_create("self");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, all_sizes);
    tcase_add_test(tc, full_refuses_and_order_holds);
    tcase_add_test(tc, sending_inside_deliver);
    tcase_add_test(tc, rdma);
    tcase_add_test(tc, put_with_notice);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

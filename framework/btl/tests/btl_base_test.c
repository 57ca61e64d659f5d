/* What the btl base checks of a module and adds to it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/btl_hints.h>
#include "framework/base/context.h"
#include "framework/btl/btl_select.h"
#include "support/run_suite.h"

static char sent[256];
static uint32_t sent_len;
static int closed, own_calls;
static struct st_btl_filled *filled;

static int reach(struct st_btl *b, int rank)
{
    (void)b, (void)rank;
    return STRATA_OK;
}
static int connect_to(struct st_btl *b, int rank, struct st_btl_endpoint **out)
{
    (void)b, (void)rank, (void)out;
    return STRATA_OK;
}
static void disconnect(struct st_btl_endpoint *ep)
{
    (void)ep;
}
static int send_bytes(struct st_btl_endpoint *ep, enum st_am am, const void *hdr, uint32_t hdr_len, const void *data,
                      uint32_t len)
{
    (void)ep, (void)am, (void)hdr, (void)hdr_len;
    if (len)
        memcpy(sent, data, len);
    sent_len = len;
    return STRATA_OK;
}
static void close_module(struct st_btl *b)
{
    (void)b;
    closed++;
}
static void own_mem_report(struct st_btl *b, st_mem_line_fn line, void *arg)
{
    (void)b, (void)line, (void)arg;
    own_calls++;
}

static const struct st_btl_ops least = {
    .reach = reach, .connect = connect_to, .disconnect = disconnect, .send = send_bytes, .close = close_module};

static struct st_btl good(void)
{
    return (struct st_btl){.ops = &least,
                           .caps = ST_BTL_ORDERED,
                           .eager_limit = 64,
                           .max_send = 128,
                           .pipeline_send = 128,
                           .facts = {.latency_ns = 1000, .bandwidth_mbs = 1000}};
}

static int get_or_put(struct st_btl_endpoint *ep, void *local, uint64_t remote, const uint8_t *key, size_t len,
                      struct st_btl_reg *reg, struct st_btl_op *op)
{
    (void)ep, (void)local, (void)remote, (void)key, (void)len, (void)reg, (void)op;
    return STRATA_OK;
}
static int arm(struct st_btl *b, struct st_btl_wait *w)
{
    (void)b, (void)w;
    return STRATA_OK;
}

static bool keep(struct st_btl *b, const void *data, uint32_t len, struct st_btl_kept *kept)
{
    (void)b, (void)data, (void)len, (void)kept;
    return false;
}

#define SAYS(b, text)                                                                                                  \
    do {                                                                                                               \
        const char *says = st_btl_check(&(b));                                                                         \
        ck_assert_msg(says &&strstr(says, text), "%s", says ? says : "nothing");                                       \
    } while (0)

START_TEST(contract_is_checked)
{
    struct st_btl b = good();
    ck_assert_ptr_null(st_btl_check(&b));
    b.max_send = 0;
    SAYS(b, "max_send is 0");
    b = good();
    b.eager_limit = 129;
    SAYS(b, "eager_limit");
    b = good();
    b.pipeline_send = 0;
    SAYS(b, "pipeline_send");
    b.pipeline_send = 129;
    SAYS(b, "pipeline_send");
    b = good();
    b.facts.latency_ns = 0;
    SAYS(b, "facts.latency_ns is 0");
    b = good();
    b.facts.bandwidth_mbs = 0;
    SAYS(b, "facts.bandwidth_mbs is 0");
    static const struct {
        uint32_t cap;
        const char *text;
    } caps[] = {{ST_BTL_GET, "claims get"},
                {ST_BTL_PUT, "claims put without"},
                {ST_BTL_PUT_APART, "how it puts"},
                {ST_BTL_NEEDS_REG, "cannot register"},
                {ST_BTL_REG_KEPT, "how it registers"},
                {ST_BTL_REG_CHEAP, "how it registers"},
                {ST_BTL_KEEP, "how it mends"},
                {ST_BTL_BOTH_TOLD, "how it mends"},
                {ST_BTL_COSTLY_POLL, "no progress"},
                {ST_BTL_CROWDED, "of endpoints"},
                {ST_BTL_FULL, "of endpoints"}};
    for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++) {
        b = good();
        b.caps |= caps[i].cap;
        SAYS(b, caps[i].text);
    }
    b = good();
    b.caps |= ST_BTL_MENDS | ST_BTL_KEEP | ST_BTL_BOTH_TOLD;
    ck_assert_ptr_null(st_btl_check(&b));
    b = good();
    struct st_btl_hints hints = {.keep = keep};
    b.hints = &hints;
    SAYS(b, "keep and release");
    b = good();
    b.max_overtaking = 1;
    SAYS(b, "max_overtaking must be 0");
    b.caps = 0;
    ck_assert_ptr_null(st_btl_check(&b));
    b.max_overtaking = ST_BTL_OVERTAKING_MOST + 1;
    SAYS(b, "how far it strays");
    b.max_overtaking = 0;
    SAYS(b, "how far it strays");
    struct st_btl_ops o = least;
    const struct st_btl_rdma gets = {.get = get_or_put};
    b = good();
    b.ops = &o;
    b.rdma = &gets;
    b.caps |= ST_BTL_GET;
    SAYS(b, "rdma_pipeline");
    b.rdma_pipeline = 4096;
    ck_assert_ptr_null(st_btl_check(&b));
    o.arm = arm;
    SAYS(b, "arm and disarm");
    o = least;
    o.send = NULL;
    SAYS(b, "must be there");
    b.ops = NULL;
    SAYS(b, "no operations");
}
END_TEST

START_TEST(defaults_work)
{
    struct st_btl b = good();
    ck_assert_int_eq(st_btl_fill(&b, &filled), STRATA_OK);
    ck_assert_ptr_ne(b.ops, &least);
    ck_assert_ptr_null(b.ops->progress);
    ck_assert_ptr_null(b.ops->arm);
    struct st_btl_endpoint ep = {.btl = &b};
    struct strata_iovec v[] = {{(char[]){"abc"}, 3}, {(char[]){"defg"}, 4}};
    strata_data_t list = {.kind = STRATA_IOVEC, .length = 7, .u.iov = {v, 2}};
    for (int round = 0; round < 2; round++) {
        struct st_payload p = {&list, 1, 5};
        ck_assert_int_eq(b.ops->send_payload(&ep, ST_AM_TEST, "h", 1, &p), STRATA_OK);
        ck_assert_uint_eq(sent_len, 5);
        ck_assert_mem_eq(sent, "bcdef", 5);
    }
    strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = 200, .u.buffer = sent};
    ck_assert_int_eq(b.ops->send_payload(&ep, ST_AM_TEST, "h", 1, &(struct st_payload){&flat, 0, 0}), STRATA_OK);
    ck_assert_uint_eq(sent_len, 0);
    ck_assert_int_eq(b.ops->send_payload(&ep, ST_AM_TEST, "h", 1, &(struct st_payload){&flat, 0, 129}), STRATA_ERR_ARG);
    list.length = 100; /* a description that lies */
    ck_assert_int_eq(b.ops->send_payload(&ep, ST_AM_TEST, "h", 1, &(struct st_payload){&list, 0, 50}), STRATA_ERR_ARG);
    ck_assert(!b.rdma->get && !b.rdma->put && !b.hints->send_zcopy && !b.hints->batch);
    struct st_btl_reg reg;
    ck_assert_int_eq(b.rdma->reg(&b, sent, 10, ST_BTL_SOURCE, &reg), STRATA_OK);
    b.rdma->dereg(&b, &reg);
    b.ops->mem_report(&b, NULL, NULL);
    ck_assert_ptr_null(b.ops->describe(&b, &ep));
    st_btl_close(&b, filled);
    ck_assert_int_eq(closed, 1);
}
END_TEST

/* For a module that has all operations, too: its own memory where that is in one piece, else memory of the base, which
 * is reported. */
START_TEST(flatten)
{
    struct st_btl b = good();
    struct strata_iovec v[] = {{(char[]){"abc"}, 3}, {(char[]){"defg"}, 4}};
    strata_data_t list = {.kind = STRATA_IOVEC, .length = 7, .u.iov = {v, 2}};
    strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = 200, .u.buffer = sent};
    const void *data = sent;

    ck_assert_int_eq(st_btl_fill(&b, &filled), STRATA_OK);
    ck_assert_uint_gt(st_btl_table_bytes(filled), 0);
    ck_assert_int_eq(st_btl_flatten(&b, &(struct st_payload){&list, 0, 0}, &data), STRATA_OK);
    ck_assert_ptr_null(data);
    ck_assert_int_eq(st_btl_flatten(&b, &(struct st_payload){&flat, 5, 100}, &data), STRATA_OK);
    ck_assert_ptr_eq(data, sent + 5);
    ck_assert_int_eq(st_btl_flatten(&b, &(struct st_payload){&flat, 0, 129}, &data), STRATA_ERR_ARG);
    ck_assert_uint_eq(st_btl_bounce_bytes(&b), 0);
    for (size_t at = 0; at < 3; at++) {
        ck_assert_int_eq(st_btl_flatten(&b, &(struct st_payload){&list, at, 4}, &data), STRATA_OK);
        ck_assert_mem_eq(data, &"abcdefg"[at], 4);
        ck_assert_ptr_eq(data, b.bounce);
    }
    ck_assert_uint_gt(st_btl_bounce_bytes(&b), 0);
    list.length = 100; /* a description that lies */
    ck_assert_int_eq(st_btl_flatten(&b, &(struct st_payload){&list, 0, 50}, &data), STRATA_ERR_ARG);
    st_btl_close(&b, filled);
    ck_assert_uint_eq(st_btl_table_bytes(NULL), 0);
}
END_TEST

START_TEST(own_operations_stay)
{
    struct st_btl_ops o = least;
    o.mem_report = own_mem_report;
    struct st_btl b = good();
    b.ops = &o;
    ck_assert_int_eq(st_btl_fill(&b, &filled), STRATA_OK);
    b.ops->mem_report(&b, NULL, NULL);
    ck_assert_int_eq(own_calls, 1);
    st_btl_close(&b, filled);
}
END_TEST

static int warnings;
static void count(void *user, int level, const char *text)
{
    (void)user;
    warnings += level == ST_LOG_WARN && strstr(text, "rank 3") != NULL;
}

START_TEST(strangers_are_dropped)
{
    struct st_base_config base = {.verbose = ST_LOG_WARN};
    strata_host_t host = {.size = sizeof(host), .log = count};
    strata_t s = {.base = &base, .host = &host};
    struct st_btl b = good();
    b.context = &s;
    ck_assert_int_eq(st_btl_fill(&b, &filled), STRATA_OK);
    struct st_frag f = {.rank = 3, .btl = &b};
    for (int am = 0; am < ST_AM_COUNT; am++)
        st_btl_deliver(&b, (enum st_am)am, &f);
    ck_assert_int_eq(warnings, ST_AM_COUNT);
    st_btl_close(&b, filled);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("btl_base");
    TCase *t = tcase_create("all");
    tcase_add_test(t, contract_is_checked);
    tcase_add_test(t, defaults_work);
    tcase_add_test(t, flatten);
    tcase_add_test(t, own_operations_stay);
    tcase_add_test(t, strangers_are_dropped);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

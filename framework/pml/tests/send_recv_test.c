/* The veneer's sends and receives: what reaches the PML, and what is stopped before. */
#include <check.h>
#include <limits.h>
#include <string.h>

#include "framework/pml/veneer.h"
#include "support/fake_stack.h"
#include "support/run_suite.h"

FAKE_STACK_TABLE;

static strata_t *s;
static strata_comm_t *world;
static char buf[64];

static void setup(void)
{
    s = fake_start();
    world = strata_world(s);
}

static void teardown(void)
{
    fake_end(s);
}

START_TEST(sends_pass_through)
{
    static const struct {
        int (*fn)(strata_comm_t *, const void *, size_t, int, int);
        strata_mode_t mode;
    } sends[] = {{strata_send, STRATA_STANDARD},
                 {strata_ssend, STRATA_SYNCHRONOUS},
                 {strata_bsend, STRATA_BUFFERED},
                 {strata_rsend, STRATA_READY}};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(sends[i].fn(world, buf, 10, 3, STRATA_TAG_MAX), STRATA_OK);
        ck_assert_ptr_eq(fake.last_send.buf, buf);
        ck_assert_uint_eq(fake.last_send.len, 10);
        ck_assert_int_eq(fake.last_send.dst, 3);
        ck_assert_int_eq(fake.last_send.tag, STRATA_TAG_MAX);
        ck_assert_int_eq((int)fake.last_send.mode, (int)sends[i].mode);
        fake.last_op[0] = '\0';
        ck_assert_int_eq(sends[i].fn(world, buf, 10, 4, 0), STRATA_ERR_RANK);
        ck_assert_int_eq(sends[i].fn(world, buf, 10, STRATA_ANY_SOURCE, 0), STRATA_ERR_RANK);
        ck_assert_int_eq(sends[i].fn(world, buf, 10, INT_MIN, 0), STRATA_ERR_RANK);
        ck_assert_int_eq(sends[i].fn(world, buf, 10, 0, -1), STRATA_ERR_TAG);
        ck_assert_int_eq(sends[i].fn(world, NULL, 10, 0, 0), STRATA_ERR_ARG);
        ck_assert_int_eq(sends[i].fn(world, buf, 10, STRATA_PROC_NULL, 0), STRATA_OK);
        ck_assert_str_eq(fake.last_op, "");
        ck_assert_int_eq(sends[i].fn(world, NULL, 0, 0, 0), STRATA_OK); /* an empty message needs no buffer */
        ck_assert_str_eq(fake.last_op, "send");
    }
    fake.next_status.error = STRATA_ERR_PEER;
    ck_assert_int_eq(strata_send(world, buf, 1, 0, 0), STRATA_ERR_PEER);
    fake.next_status.error = STRATA_OK;
}
END_TEST

START_TEST(receives_pass_through)
{
    strata_status_t st;
    fake.next_status = (strata_status_t){.source = 2, .tag = 9, .length = 5, .sent = 5};
    ck_assert_int_eq(strata_recv(world, buf, 10, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &st), STRATA_OK);
    ck_assert_int_eq(st.source, 2);
    ck_assert_int_eq(fake.last_recv.src, STRATA_ANY_SOURCE);
    ck_assert_int_eq(strata_recv(world, NULL, 0, 3, 0, STRATA_STATUS_IGNORE), STRATA_OK);
    fake.last_op[0] = '\0';
    ck_assert_int_eq(strata_recv(world, buf, 1, 4, 0, &st), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_recv(world, buf, 1, INT_MAX, 0, &st), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_recv(world, buf, 1, -3, 0, &st), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_recv(world, buf, 1, 0, -2, &st), STRATA_ERR_TAG);
    ck_assert_int_eq(strata_recv(world, NULL, 1, 0, 0, &st), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_recv(world, buf, 1, STRATA_PROC_NULL, 0, &st), STRATA_OK);
    ck_assert_int_eq(st.source, STRATA_PROC_NULL);
    ck_assert_int_eq(st.tag, STRATA_ANY_TAG);
    ck_assert_uint_eq(st.length, 0);
    ck_assert_int_eq(strata_recv(world, buf, 1, STRATA_PROC_NULL, 0, STRATA_STATUS_IGNORE), STRATA_OK);
    ck_assert_str_eq(fake.last_op, "");
}
END_TEST

static ptrdiff_t pack(void *u, size_t o, void *d, size_t n)
{
    (void)u, (void)o, (void)d;
    return (ptrdiff_t)n;
}

START_TEST(described_data)
{
    strata_data_t flat = {.kind = STRATA_CONTIGUOUS, .length = 8, .u.buffer = buf};
    strata_data_t send_only = {.kind = STRATA_GENERIC, .length = 8, .u.convert = {pack, NULL, NULL}};
    strata_status_t st;
    fake.next_status = (strata_status_t){.source = 0, .length = 8};
    ck_assert_int_eq(strata_send_data(world, &flat, 0, 1, STRATA_SYNCHRONOUS), STRATA_OK);
    ck_assert_str_eq(fake.last_op, "send"); /* contiguous data takes the short way */
    ck_assert_ptr_eq(fake.last_send.buf, buf);
    ck_assert_int_eq(strata_send_data(world, &send_only, 0, 1, STRATA_STANDARD), STRATA_OK);
    ck_assert_str_eq(fake.last_op, "isend");
    ck_assert_ptr_eq(fake.last_send.data, &send_only);
    ck_assert_int_eq(fake.freed, 1);
    ck_assert_int_eq(strata_recv_data(world, &flat, 0, 1, &st), STRATA_OK);
    ck_assert_str_eq(fake.last_op, "recv");
    ck_assert_int_eq(strata_recv_data(world, &send_only, 0, 1, &st), STRATA_ERR_ARG); /* cannot unpack */
    struct strata_iovec v = {buf, 8};
    strata_data_t list = {.kind = STRATA_IOVEC, .length = 8, .u.iov = {&v, 1}};
    ck_assert_int_eq(strata_recv_data(world, &list, 0, 1, &st), STRATA_OK);
    ck_assert_uint_eq(st.length, 8);
    ck_assert_str_eq(fake.last_op, "irecv");
    ck_assert_int_eq(strata_recv_data(world, &list, STRATA_PROC_NULL, 1, &st), STRATA_OK);
    ck_assert_int_eq(st.source, STRATA_PROC_NULL);
    ck_assert_int_eq(strata_send_data(world, &list, STRATA_PROC_NULL, 1, STRATA_STANDARD), STRATA_OK);
    ck_assert_int_eq(strata_send_data(world, &list, 0, 1, (strata_mode_t)4), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_send_data(world, NULL, 0, 1, STRATA_STANDARD), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_send_data(NULL, &flat, 0, 1, STRATA_STANDARD), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_recv_data(NULL, &flat, 0, 1, &st), STRATA_ERR_ARG);
}
END_TEST

START_TEST(sendrecv)
{
    strata_status_t st;
    ck_assert_int_eq(strata_sendrecv(world, buf, 4, 2, 1, buf + 8, 4, 3, 2, &st), STRATA_OK);
    ck_assert_int_eq(fake.last_send.dst, 2);
    ck_assert_int_eq(fake.last_recv.src, 3);
    ck_assert_int_eq(fake.n_pending, 0);
    /* A send that cannot be made takes its receive back. */
    ck_assert_int_eq(strata_sendrecv(world, buf, 4, 9, 1, buf + 8, 4, 3, 2, &st), STRATA_ERR_RANK);
    ck_assert_int_eq(fake.cancelled, 1);
    ck_assert_int_eq(fake.n_pending, 0);
    ck_assert_int_eq(strata_sendrecv(world, buf, 4, 2, 1, buf + 8, 4, 9, 2, &st), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_sendrecv(world, buf, 4, STRATA_PROC_NULL, 1, buf, 4, STRATA_PROC_NULL, 2, &st), STRATA_OK);
}
END_TEST

START_TEST(communicators)
{
    strata_comm_t *c = NULL;
    const int members[] = {3, 1, 0};
    strata_comm_spec_t spec = {.size = sizeof(spec), .id = 5, .rank = 1, .n_ranks = 3, .world = members, .user = buf};
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_OK);
    ck_assert_int_eq(strata_comm_rank(c), 1);
    ck_assert_int_eq(strata_comm_size(c), 3);
    ck_assert_ptr_eq(strata_comm_user(c), buf);
    ck_assert_ptr_ne(c->world, members); /* copied */
    ck_assert_int_eq(strata_send(c, buf, 1, 3, 0), STRATA_ERR_RANK);
    ck_assert_int_eq(strata_comm_free(c), STRATA_OK);
    ck_assert_int_eq(strata_comm_free(world), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_comm_free(NULL), STRATA_ERR_ARG);
    spec.id = 0;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_ARG);
    spec.id = 5;
    spec.rank = 0; /* that is job rank 3's place */
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_RANK);
    spec.rank = 3;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_RANK);
    const int beyond[] = {4, 1};
    spec.world = beyond;
    spec.rank = 1;
    spec.n_ranks = 2;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_RANK);
    spec.world = NULL;
    spec.n_ranks = 5;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_RANK);
    spec.n_ranks = 4;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_OK);
    ck_assert_int_eq(strata_comm_free(c), STRATA_OK);
    fake.fail = 1u << FAKE_COMM;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_NOMEM);
    fake.fail = 0;
    spec.size = 1;
    ck_assert_int_eq(strata_comm_create(s, &spec, &c), STRATA_ERR_ARG);
}
END_TEST

START_TEST(attached_buffer)
{
    void *b;
    size_t n;
    ck_assert_int_eq(strata_buffer_attach(s, NULL, 5), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_buffer_attach(s, buf, 0), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_buffer_attach(s, buf, sizeof(buf)), STRATA_OK);
    ck_assert_int_eq(strata_buffer_detach(s, &b, NULL), STRATA_ERR_ARG);
    ck_assert_int_eq(strata_buffer_attach(s, buf, sizeof(buf)), STRATA_ERR_STATE);
    ck_assert_int_eq(strata_buffer_detach(s, &b, &n), STRATA_OK);
    ck_assert_ptr_eq(b, buf);
    ck_assert_uint_eq(n, sizeof(buf));
    ck_assert_int_eq(strata_buffer_detach(s, &b, &n), STRATA_ERR_STATE);
}
END_TEST

/* Copies lie apart, are what was sent, and all room comes back in whatever order they go. */
START_TEST(buffer_takes_and_gives_back)
{
    enum { ROOM = 4 * (100 + STRATA_BSEND_OVERHEAD) };
    static char room[ROOM], whole[ROOM], out[100];
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    strata_data_t data = {.kind = STRATA_CONTIGUOUS, .length = sizeof(out), .u.buffer = out};
    strata_data_t all = {.kind = STRATA_CONTIGUOUS, .length = ROOM - STRATA_BSEND_OVERHEAD, .u.buffer = whole};
    void *block[4], *copy[4], *b;
    size_t n;

    ck_assert_int_eq(st_pml_buffer_copy(s, &data, &block[0], &copy[0]), STRATA_ERR_BUFFER);
    ck_assert_int_eq(strata_buffer_attach(s, room, sizeof(room)), STRATA_OK);
    for (size_t o = 0; o < sizeof(orders) / sizeof(orders[0]); o++) {
        for (int i = 0; i < 4; i++) {
            memset(out, 'a' + i, sizeof(out));
            ck_assert_int_eq(st_pml_buffer_copy(s, &data, &block[i], &copy[i]), STRATA_OK);
            ck_assert((char *)copy[i] >= room && (char *)copy[i] + sizeof(out) <= room + ROOM);
        }
        data.length = ROOM / 2;
        ck_assert_int_eq(st_pml_buffer_copy(s, &data, &b, &b), STRATA_ERR_BUFFER);
        data.length = sizeof(out);
        for (int i = 0; i < 4; i++)
            for (size_t k = 0; k < sizeof(out); k++)
                ck_assert_int_eq(((char *)copy[i])[k], 'a' + i);
        for (int i = 0; i < 4; i++)
            st_pml_buffer_put(s, block[orders[o][i]]);
    }
    ck_assert_int_eq(st_pml_buffer_copy(s, &all, &block[0], &copy[0]), STRATA_OK); /* it is in one piece again */
    st_pml_buffer_put(s, block[0]);
    ck_assert_int_eq(strata_buffer_detach(s, &b, &n), STRATA_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("send_recv");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sends_pass_through);
    tcase_add_test(t, receives_pass_through);
    tcase_add_test(t, described_data);
    tcase_add_test(t, sendrecv);
    tcase_add_test(t, communicators);
    tcase_add_test(t, attached_buffer);
    tcase_add_test(t, buffer_takes_and_gives_back);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

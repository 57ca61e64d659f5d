/* Memory of a peer that is mapped for loads and stores of both: what is seen, what may not be mapped, how long it
 * lasts. */
#include "put.h"
#include "support/pattern.h"
#include "support/run_suite.h"

static int map(const void *remote, size_t len, struct st_shared_mapping *m)
{
    *m = (struct st_shared_mapping){0};
    return r[FROM]->btl->rdma->map(ep, address(remote), in.reg.key, len, m);
}

/* The mapping begins at any byte; stores of either side are seen at the other, and nothing beside them is written. */
START_TEST(both_sides_see_stores)
{
    enum { AT = 5003, LEN = 20000 };
    struct st_shared_mapping one, two;
    open_job(SM_COPY_AUTO, 2, true);
    ck_assert_int_eq(map(in.area + AT, LEN, &one), STRATA_OK);
    ck_assert_int_eq(map(in.area, AREA, &two), STRATA_OK);
    ck_assert_ptr_ne(one.memory, in.area + AT);
    pattern_fill(one.memory, LEN, 1);
    ck_assert_int_eq((int)pattern_check(in.area + AT, LEN, 1), -1);
    ck_assert_int_eq((int)pattern_check(two.memory + AT, LEN, 1), -1);
    ck_assert_int_eq(in.area[AT - 1], 0);
    ck_assert_int_eq(in.area[AT + LEN], 0);
    pattern_fill(in.area + AT, LEN, 2);
    ck_assert_int_eq((int)pattern_check(one.memory, LEN, 2), -1);
    pattern_fill(out, LEN, 3); /* puts as well */
    put_all(out, in.area + AT, LEN, 0);
    ck_assert_int_eq((int)pattern_check(one.memory, LEN, 3), -1);
    st_shared_unmap(&one); /* the other stays */
    in.area[AREA - 1] = 77;
    ck_assert_int_eq(two.memory[AREA - 1], 77);
    ck_assert_uint_eq(sender()->n_maps, 1); /* the put's: the others are the caller's, which no limit ends */
    st_shared_unmap(&two);
    close_job();
}
END_TEST

/* It lasts when its endpoint and module are gone, and when the memory's owner has given it back. */
START_TEST(lasts)
{
    struct st_shared_mapping m;
    open_job(SM_COPY_AUTO, 2, true);
    ck_assert_int_eq(map(in.area, AREA, &m), STRATA_OK);
    r[FROM]->btl->ops->disconnect(ep);
    AWAIT(sender()->peers == NULL, (progress(FROM), progress(TO)));
    pattern_fill(m.memory, AREA, 3);
    ck_assert_int_eq((int)pattern_check(in.area, AREA, 3), -1);
    close_job();
    memset(m.memory, 1, AREA);
    st_shared_unmap(&m);
    st_shared_unmap(&m); /* nothing is mapped */
    ck_assert_ptr_null(m.memory);
}
END_TEST

/* Only memory that the key names: no byte before or behind it, no other file, none of a peer that is gone. */
START_TEST(what_may_not_be_mapped)
{
    struct st_shared_mapping m;
    struct sm_key key;
    open_job(SM_COPY_AUTO, 2, true);
    const struct st_btl_rdma *rdma = r[FROM]->btl->rdma;
    struct st_btl_reg good = in.reg;
    ck_assert_int_eq(map(in.area - 1, 8, &m), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(map(in.area + AREA - 7, 8, &m), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(map(in.area + 1, AREA, &m), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(map(in.area + 1, SIZE_MAX, &m), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(rdma->map(ep, address(in.area), NULL, 8, &m), STRATA_ERR_UNSUPPORTED);
    memset(&in.reg, 0, sizeof in.reg); /* the key of memory that no peer can map */
    ck_assert_int_eq(map(in.area, 8, &m), STRATA_ERR_UNSUPPORTED);
#define LIE(field, value)                                                                                              \
    do {                                                                                                               \
        memcpy(&key, good.key, sizeof key);                                                                            \
        key.field = (value);                                                                                           \
        memcpy(in.reg.key, &key, sizeof key);                                                                          \
        ck_assert_int_eq(map(in.area, 8, &m), STRATA_ERR_UNSUPPORTED);                                                 \
        ck_assert_ptr_null(m.memory);                                                                                  \
    } while (0)
    LIE(name.length, 0);
    LIE(name.length, UINT64_MAX);
    LIE(name.offset, UINT64_MAX);
    LIE(name.offset, (uint64_t)1 << 40);
    LIE(name.fd, -1);
    LIE(name.inode, key.name.inode + 1);
    LIE(address, UINT64_MAX);
#undef LIE
    in.reg = good;
    ck_assert_int_eq(map(in.area + AREA - 8, 8, &m), STRATA_OK);
    st_shared_unmap(&m);
    sm_peer(ep)->died = true;
    ck_assert_int_eq(map(in.area, 8, &m), STRATA_ERR_PEER);
    sm_peer(ep)->died = false;
    close_job();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mapped memory of a peer");
    TCase *t = tcase_create("map");
    tcase_add_test(t, both_sides_see_stores);
    tcase_add_test(t, lasts);
    tcase_add_test(t, what_may_not_be_mapped);
    suite_add_tcase(s, t);
    return run_suite(s);
}

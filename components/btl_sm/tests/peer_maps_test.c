/* Memory of peers that is mapped: keys, keys that lie, mappings that are too many, memory that is given back. */
#include "put.h"
#include "support/pattern.h"
#include "support/run_suite.h"

/* Only what peers may write is named. */
START_TEST(keys)
{
    open_job(SM_COPY_AUTO, 2, true);
    struct sm_key key, none = {0};
    struct st_btl_reg reg;
    struct st_btl *btl = r[TO]->btl;
    memcpy(&key, in.reg.key, sizeof key);
    ck_assert_uint_eq(key.address, address(in.area));
    ck_assert_uint_eq(key.name.length, AREA);
    ck_assert_int_eq(btl->rdma->reg(btl, in.area + 5, 10, ST_BTL_ANY_USE, &reg), STRATA_OK);
    memcpy(&key, reg.key, sizeof key);
    ck_assert_uint_eq(key.name.offset, in.piece.offset + 5);
    ck_assert_uint_eq(key.name.length, 10);
    ck_assert_int_eq(btl->rdma->reg(btl, in.area + 5, 10, ST_BTL_SOURCE, &reg), STRATA_OK);
    ck_assert_int_eq(memcmp(reg.key, &none, sizeof none), 0);
    ck_assert_int_eq(btl->rdma->reg(btl, in.area + 5, AREA, ST_BTL_ANY_USE, &reg), STRATA_OK);
    ck_assert_int_eq(memcmp(reg.key, &none, sizeof none), 0);
    r[TO]->context.mpool = NULL;
    ck_assert_int_eq(btl->rdma->reg(btl, in.area, 10, ST_BTL_ANY_USE, &reg), STRATA_OK);
    ck_assert_int_eq(memcmp(reg.key, &none, sizeof none), 0);
    close_job();
}
END_TEST

/* More memory than is mapped at a time; the mappings go with the peer. */
static size_t reported;
static void take_line(void *arg, const strata_mem_line_t *l)
{
    (void)arg;
    if (strcmp(l->category, "mapped peer memory") == 0) {
        ck_assert(l->user);
        reported = l->bytes;
    }
}
START_TEST(mappings_are_bounded)
{
    enum { N = SM_MAPS_PEER + 10, EACH = 8192 };
    static struct st_btl_reg reg[N];
    struct waiting w;
    struct sm_map *first = NULL;
    open_job(SM_COPY_OFF, 2, true);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(r[TO]->btl->rdma->reg(r[TO]->btl, in.area + i * EACH, EACH, ST_BTL_ANY_USE, &reg[i]),
                         STRATA_OK);
    in.reg = reg[0];
    put_all(out, in.area, 8, 0);
    first = sm_peer(ep)->maps;
    first->holds++;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < N; i++) {
            pattern_fill(out, 100, (uint64_t)(round * N + i));
            in.reg = reg[i];
            put_all(out, in.area + i * EACH + i, 100, (uint32_t)i);
            ck_assert_int_eq((int)pattern_check(in.area + i * EACH + i, 100, (uint64_t)(round * N + i)), -1);
            ck_assert_uint_le(sender()->n_maps, SM_MAPS_PEER);
        }
    ck_assert_uint_eq(sender()->n_maps, SM_MAPS_PEER);
    r[FROM]->btl->ops->mem_report(r[FROM]->btl, take_line, NULL);
    ck_assert_uint_eq(reported, SM_MAPS_PEER * EACH);
    ck_assert_int_eq(memcmp(&first->key, reg[0].key, sizeof reg[0].key), 0); /* the one that was held */
    for (struct sm_map *map = sm_peer(ep)->maps; map; map = map->next)
        map->holds = 1; /* all are in use: there is no room, and no harm */
    in.reg = reg[1];
    ck_assert_int_eq(put(out, in.area + EACH, 8, 0, &w), STRATA_ERR_UNSUPPORTED);
    for (struct sm_map *map = sm_peer(ep)->maps; map; map = map->next)
        map->holds = 0;
    put_all(out, in.area + EACH, 8, 0);
    /* All together: those of others go, too. */
    sender()->n_maps += SM_MAPS_ALL - SM_MAPS_PEER;
    in.reg = reg[2];
    put_all(out, in.area + 2 * EACH, 8, 0);
    ck_assert_uint_eq(sender()->n_maps, SM_MAPS_ALL);
    sender()->n_maps -= SM_MAPS_ALL - SM_MAPS_PEER;
    r[FROM]->btl->ops->disconnect(ep);
    AWAIT(sender()->peers == NULL, (progress(FROM), progress(TO)));
    ck_assert_uint_eq(sender()->n_maps, 0);
    close_job();
}
END_TEST

/* A key that is wrong counts as none. */
START_TEST(keys_that_lie)
{
    struct waiting w;
    open_job(SM_COPY_OFF, 2, true);
    struct st_btl_reg good = in.reg;
    struct sm_key key;
#define LIE(field, value)                                                                                              \
    do {                                                                                                               \
        memcpy(&key, good.key, sizeof key);                                                                            \
        key.field = (value);                                                                                           \
        memcpy(in.reg.key, &key, sizeof key);                                                                          \
        for (int i = 0; i < 2; i++)                                                                                    \
            ck_assert_int_eq(put(out, in.area, 8, 0, &w), STRATA_ERR_UNSUPPORTED);                                     \
    } while (0)
    LIE(address, address(in.area) + 1);
    LIE(address, address(in.area) - AREA);
    LIE(address, UINT64_MAX);
    LIE(name.length, 7);
    LIE(name.length, UINT64_MAX);
    LIE(name.length, (uint64_t)1 << 29);
    LIE(name.offset, UINT64_MAX);
    LIE(name.offset, (uint64_t)1 << 40);
    LIE(name.fd, -1);
    LIE(name.fd, sm_module(r[TO]->btl)->seg.fd); /* a good file, but another one */
    LIE(name.inode, key.name.inode + 1);
#undef LIE
    in.reg = good;
    ck_assert_int_eq(put(out, in.area + AREA - 7, 8, 0, &w), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(put(out, in.area + AREA - 8, 8, 0, &w), 1);
    ck_assert_int_eq(put(out, in.area - 1, 8, 0, &w), STRATA_ERR_UNSUPPORTED);
    close_job();
}
END_TEST

/* A put that comes too late never hits memory that was given out since. */
START_TEST(late_puts_hit_nobody)
{
    struct waiting w;
    struct st_shared_piece later;
    open_job(SM_COPY_OFF, 2, true);
    ck_assert_int_eq(put(out, in.area, 8, 0, &w), 1);
    struct st_shared_piece gone = in.piece;
    st_shared_free(&in.pool.file, &in.piece);
    ck_assert_int_eq(st_shared_alloc(&in.pool.file, AREA, &later), STRATA_OK);
    memset(out, 5, 1000);
    ck_assert_int_eq(put(out, gone.memory, 1000, 0, &w), 1);
    for (int i = 0; i < AREA; i++)
        if (((const char *)later.memory)[i] != 0)
            ck_abort_msg("byte %d", i);
    in.piece = later;
    in.area = later.memory;
    close_job();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("memory of peers");
    TCase *t = tcase_create("peer_maps");
    tcase_add_test(t, keys);
    tcase_add_test(t, mappings_are_bounded);
    tcase_add_test(t, keys_that_lie);
    tcase_add_test(t, late_puts_hit_nobody);
    suite_add_tcase(s, t);
    return run_suite(s);
}

/* put_notify: by stores into mapped memory, by single copy; without room; peers that go. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "put.h"
#include "support/pattern.h"
#include "support/run_suite.h"

static const size_t lengths[] = {1, 7, 8, 64, 65, 4096, 5001, 16384, 16385, 65536, 65537, LONG};
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

/* _i: by a ring or by the queue, with single copy or without. */
START_TEST(by_stores)
{
    open_job(_i & 1 ? SM_COPY_AUTO : SM_COPY_OFF, _i & 2 ? 2 : 0, true);
    struct sm_map *map;
    for (uint32_t i = 0; i < 3 * N_LENGTHS; i++) {
        size_t len = lengths[i % N_LENGTHS], at = i * 131;
        pattern_fill(out, len, i);
        memset(in.area, 0x77, AREA);
        put_all(out, in.area + at, len, 0x30000000u + i);
        ck_assert_int_eq((int)pattern_check(in.area + at, len, i), -1);
        ck_assert_int_eq(in.area[at + len], 0x77);
        ck_assert(at == 0 || in.area[at - 1] == 0x77);
    }
    ck_assert_uint_eq(sender()->count.stored, 3 * N_LENGTHS);
    ck_assert_uint_eq(sender()->count.one_sided + sender()->count.coop, 0);
    ck_assert_uint_eq(sender()->n_maps, 1);
    ck_assert(sm_peer(ep)->hot.word != ST_HOT_NONE || _i < 2);
    ck_assert_ptr_nonnull(sm_map_find(sm_peer(ep), in.reg.key, address(in.area), 1, &map));
    ck_assert_ptr_ne(map->at.memory, in.area); /* although it is this process */
    close_job();
}
END_TEST

START_TEST(by_single_copy)
{
    static const uint8_t zeros[ST_BTL_KEY_MAX];
    open_job(SM_COPY_AUTO, _i ? 2 : 0, false);
    ck_assert_int_eq(memcmp(in.reg.key, zeros, sizeof zeros), 0);
    for (uint32_t i = 0; may_copy() && i < 3 * N_LENGTHS; i++) {
        size_t len = lengths[i % N_LENGTHS];
        pattern_fill(out, len, i);
        put_all(out, in.area + i, len, i);
        ck_assert_int_eq((int)pattern_check(in.area + i, len, i), -1);
    }
    ck_assert_uint_eq(sender()->count.stored, 0);
    ck_assert_uint_eq(sender()->n_maps, 0);
    close_job();
}
END_TEST

START_TEST(neither)
{
    struct waiting w;
    open_job(SM_COPY_OFF, 2, false);
    ck_assert_int_eq(put(out, in.area, 8, 0, &w), STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(r[FROM]->btl->rdma->put_notify(ep, out, address(in.area), NULL, 8, NULL, 0, &w.op),
                     STRATA_ERR_UNSUPPORTED);
    ck_assert_int_eq(w.done, 0);
    progress(TO);
    ck_assert_uint_eq(in.n, 0);
    close_job();
}
END_TEST

/* Nobody looks: as many are taken as there is room for, the next one has written nothing. */
START_TEST(no_room)
{
    struct waiting w;
    open_job(_i & 1 ? SM_COPY_AUTO : SM_COPY_OFF, _i & 2 ? 2 : 0, !(_i & 1));
    for (int i = 0; i < 5 && (may_copy() || !(_i & 1)); i++)
        put_all(out, in.area, 8, 0);
    for (int round = 0; round < 5 && (may_copy() || !(_i & 1)); round++) {
        uint32_t sent = 0, before = in.n;
        int rc;
        do {
            pattern_fill(out, 100, sent);
            rc = put(out, in.area, 100, sent, &w);
            sent += rc == 1;
        } while (rc == 1);
        ck_assert_int_eq(rc, STRATA_ERR_AGAIN);
        ck_assert_uint_ge(sent, 12);
        ck_assert_int_eq((int)pattern_check(in.area, 100, sent - 1), -1);
        AWAIT(in.n >= before + sent, progress(TO));
        ck_assert_uint_eq(in.n, before + sent);
        ck_assert_uint_eq(in.last, sent - 1);
    }
    close_job();
}
END_TEST

static uint32_t fill_up(void)
{
    uint32_t n = 0, hdr = 0;
    while (r[FROM]->btl->ops->send(ep, ST_AM_TEST, &hdr, sizeof hdr, NULL, 0) == STRATA_OK)
        n++;
    return n;
}
/* A long one whose data has gone while others took the room for its notice. */
static void long_without_room(struct waiting *w, const void *local)
{
    for (int i = 0; i < 5; i++)
        put_all(out, in.area, 8, 0);
    ck_assert_int_eq(put(local, in.area, LONG, 99, w), STRATA_OK);
    ck_assert_uint_gt(fill_up(), 0);
    AWAIT(sender()->notices.first != NULL, progress(FROM));
    ck_assert_ptr_null(sender()->ops.first);
    for (int i = 0; i < 100; i++)
        progress(FROM);
    ck_assert_int_eq(w->done, 0);
}

/* It waits, the process sleeps, and is woken by the room. */
START_TEST(a_notice_waits_for_room)
{
    struct waiting w;
    struct st_btl_wait wait = {.fd = -1};
    int rc;
    open_job(SM_COPY_OFF, _i ? 2 : 0, true);
    pattern_fill(out, LONG, 7);
    long_without_room(&w, out);
    for (int i = 0; (rc = r[FROM]->btl->ops->arm(r[FROM]->btl, &wait)) == STRATA_ERR_AGAIN && i < 10; i++)
        progress(FROM); /* counters that had moved */
    ck_assert_int_eq(rc, STRATA_OK);
    ck_assert_uint_eq(atomic_load(wait.word), wait.expect);
    uint32_t before = in.n;
    AWAIT(atomic_load(wait.word) != wait.expect, progress(TO));
    r[FROM]->btl->ops->disarm(r[FROM]->btl);
    AWAIT(in.n > before, (progress(FROM), progress(TO)));
    ck_assert_uint_eq(in.last, 99);
    ck_assert_int_eq((int)pattern_check(in.area, LONG, 7), -1);
    ck_assert_int_eq(w.done, 1);
    ck_assert_int_eq(w.rc, STRATA_OK);
    ck_assert_uint_eq(sender()->work, 0);
    close_job();
}
END_TEST

/* The endpoint goes while the data goes (0), or the notice waits (1); or the module is closed (2). */
START_TEST(it_ends_with_the_endpoint)
{
    struct waiting w;
    open_job(SM_COPY_OFF, 2, true);
    if (_i == 0)
        ck_assert_int_eq(put(out, in.area, LONG, 99, &w), STRATA_OK);
    else
        long_without_room(&w, out);
    if (_i < 2) {
        r[FROM]->btl->ops->disconnect(ep);
        AWAIT(w.done, progress(FROM));
        ck_assert_int_eq(w.rc, STRATA_ERR_PEER);
        AWAIT(sender()->peers == NULL, (progress(FROM), progress(TO)));
        ck_assert_uint_eq(sender()->n_maps, 0);
        ck_assert_uint_eq(sender()->work, 0);
    }
    close_job();
    ck_assert_int_eq(w.done, _i < 2);
}
END_TEST

/* The receiver is killed: its memory stays mapped for what is under way, which then ends. */
START_TEST(the_receiver_dies)
{
    int said[2], failures;
    struct rig_rank *me = r[FROM] = malloc(sizeof *me);
    struct waiting w;
    board = rig_board(2);
    memset(&in, 0, sizeof in);
    ck_assert_int_eq(pipe(said), 0);
    pid_t child = fork();
    if (child == 0) {
        static struct rig_rank it;
        struct st_shared_piece piece;
        struct {
            uint64_t at;
            struct st_btl_reg reg;
        } told;
        in.pool = (struct pool){.base.ops = &pool_ops, .file = {.fd = -1}};
        rig_init(&it, board, TO);
        it.context.mpool = &in.pool.base;
        rig_open(&it);
        RIG_CHECK(st_shared_alloc(&in.pool.file, AREA, &piece) == STRATA_OK);
        RIG_CHECK(it.btl->rdma->reg(it.btl, piece.memory, AREA, ST_BTL_ANY_USE, &told.reg) == STRATA_OK);
        told.at = address(piece.memory);
        RIG_CHECK(write(said[1], &told, sizeof told) == sizeof told);
        for (;;)
            pause();
    }
    close(said[1]); /* a child that ends early ends the reads below */
    rig_init(me, board, FROM);
    me->par.single_copy = SM_COPY_OFF;
    me->par.queue_slots = 16;
    rig_open(me);
    uint64_t remote;
    ck_assert_int_eq((int)read(said[0], &remote, sizeof remote), sizeof remote);
    ck_assert_int_eq((int)read(said[0], &in.reg, sizeof in.reg), sizeof in.reg);
    ep = rig_connect(me, TO);
    in.area = (char *)(uintptr_t)remote;
    ck_assert_int_eq(put(out, in.area, 8, 0, &w), 1);
    ck_assert_int_eq(put(out, in.area, LONG, 1, &w), STRATA_OK);
    if (_i)
        (void)fill_up();
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    /* In _i == 0 the notice goes into the queue that nobody reads. */
    AWAIT(w.done && me->failures, (progress(FROM), sm_pending(sender())));
    ck_assert_int_eq(w.rc, _i ? STRATA_ERR_PEER : STRATA_OK);
    failures = me->failures;
    ck_assert_int_eq(put(out, in.area, 8, 0, &w), STRATA_ERR_PEER);
    ck_assert_int_eq(me->failures, failures);
    rig_close(me);
    free(me);
    close(said[0]);
    munmap(board, sizeof *board);
}
END_TEST

/* Both at the same time: whoever reads a notice finds the data, to its last byte. Notices may overtake each other. */
enum { SLOTS = 8, SLOT = AREA / SLOTS, MANY = 4000 };
static _Atomic(bool) seen[MANY]; /* notices handled: their slots are free again */
static void check_slot(void *arg, const struct st_frag *f)
{
    uint32_t i, len;
    (void)arg;
    memcpy(&i, f->hdr, sizeof i);
    RIG_CHECK(i < MANY && !atomic_load(&seen[i]));
    memcpy(&len, in.area + (size_t)(i % SLOTS) * SLOT, sizeof len);
    const char *at = in.area + (size_t)(i % SLOTS) * SLOT;
    RIG_CHECK(len >= 8 && len <= SLOT && at[len - 1] == (char)i && at[len / 2 + 2] == (char)i);
    in.n++;
    atomic_store(&seen[i], true);
}
static void *receive_all(void *arg)
{
    (void)arg;
    while (in.n < MANY)
        if (r[TO]->btl->ops->progress(r[TO]->btl) == 0)
            let_run();
    return NULL;
}
START_TEST(seen_by_another_thread)
{
    pthread_t t;
    struct waiting w;
    open_job(SM_COPY_OFF, 2, true);
    r[TO]->btl->am[ST_AM_NOTICE].fn = check_slot;
    for (uint32_t i = 0; i < MANY; i++)
        atomic_store(&seen[i], false);
    pthread_create(&t, NULL, receive_all, NULL);
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t len = i % 50 == 49 ? 8 + (i * 7919u) % (SLOT - 8) : 8 + (i * 31) % 500;
        int rc;
        memset(out, (int)(i & 0xff), len);
        memcpy(out, &len, sizeof len);
        AWAIT(i < SLOTS || atomic_load(&seen[i - SLOTS]), (progress(FROM), let_run()));
        AWAIT((rc = put(out, in.area + (size_t)(i % SLOTS) * SLOT, len, i, &w)) != STRATA_ERR_AGAIN,
              (progress(FROM), let_run()));
        AWAIT(rc == 1 || w.done, progress(FROM));
        ck_assert(rc == 1 || (rc == STRATA_OK && w.rc == STRATA_OK));
    }
    pthread_join(t, NULL);
    ck_assert_uint_eq(sender()->count.stored, MANY);
    close_job();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("put with notice over sm");
    TCase *t = tcase_create("put_notify");
    tcase_add_loop_test(t, by_stores, 0, 4);
    tcase_add_loop_test(t, by_single_copy, 0, 2);
    tcase_add_test(t, neither);
    tcase_add_loop_test(t, no_room, 0, 4);
    tcase_add_loop_test(t, a_notice_waits_for_room, 0, 2);
    tcase_add_loop_test(t, it_ends_with_the_endpoint, 0, 3);
    tcase_add_loop_test(t, the_receiver_dies, 0, 2);
    tcase_add_test(t, seen_by_another_thread);
    suite_add_tcase(s, t);
    return run_suite(s);
}

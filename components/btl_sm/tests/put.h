/* Two ranks in one thread, of which one puts with a notice into the other's memory. */
#ifndef SM_TEST_PUT_H
#define SM_TEST_PUT_H

#include <strata/sdk/mpool.h>
#include "rig.h"
#include "peer_maps.h"
#include "single_copy.h"
#include "support/await.h"

enum { AREA = 1 << 20, LONG = 300001, TO = 0, FROM = 1 };

/* A context's pool, of which only the shared file is needed. */
struct pool {
    struct st_mpool base;
    struct st_shared_file file;
};
static inline bool pool_find(struct st_mpool *pool, const void *memory, size_t len, struct st_shared_piece *out)
{
    return st_shared_find(&((struct pool *)(void *)pool)->file, memory, len, out);
}
static const struct st_mpool_ops pool_ops = {.find_shared = pool_find};

struct waiting {
    struct st_btl_op op;
    int done, rc;
};
static inline void on_done(struct st_btl_op *op, int rc)
{
    struct waiting *w = (struct waiting *)(void *)op;
    w->done++;
    w->rc = rc;
}

/* The receiver. */
static struct {
    struct pool pool;
    struct st_shared_piece piece;
    char *area;
    struct st_btl_reg reg;
    uint32_t n, last;
} in;

static struct rig_board *board;
static struct rig_rank *r[2];
static struct st_btl_endpoint *ep; /* the sender's */
static char out[AREA];

static inline void deliver_notice(void *arg, const struct st_frag *f)
{
    (void)arg;
    RIG_CHECK(f->hdr_len == sizeof in.last && f->len == 0 && f->rank == FROM);
    memcpy(&in.last, f->hdr, sizeof in.last);
    in.n++;
}
static inline void deliver(void *arg, const struct st_frag *f)
{
    (void)arg, (void)f;
}

/* memory: 0: private, else in the shared file. */
static inline void open_job(int single_copy, int64_t rings, bool shared)
{
    memset(&in, 0, sizeof in);
    in.pool = (struct pool){.base.ops = &pool_ops, .file = {.fd = -1}};
    board = rig_board(2);
    for (int i = 0; i < 2; i++) {
        r[i] = malloc(sizeof *r[i]);
        rig_init(r[i], board, i);
        r[i]->par.single_copy = single_copy;
        r[i]->par.rings = rings;
        r[i]->par.ring_slots = r[i]->par.queue_slots = 16;
        r[i]->par.promote_after = 2;
        rig_open(r[i]);
        r[i]->btl->am[ST_AM_NOTICE].fn = deliver_notice;
        r[i]->btl->am[ST_AM_TEST].fn = deliver;
    }
    r[TO]->context.mpool = &in.pool.base;
    ep = rig_connect(r[FROM], TO);
    ck_assert_int_eq(st_shared_alloc(&in.pool.file, AREA, &in.piece), STRATA_OK);
    in.area = shared ? in.piece.memory : calloc(1, AREA);
    ck_assert_int_eq(r[TO]->btl->rdma->reg(r[TO]->btl, in.area, AREA, ST_BTL_ANY_USE, &in.reg), STRATA_OK);
}
static inline void close_job(void)
{
    for (int i = 0; i < 2; i++) {
        rig_close(r[i]);
        free(r[i]);
    }
    if (in.area != in.piece.memory)
        free(in.area);
    st_shared_free(&in.pool.file, &in.piece);
    st_shared_close(&in.pool.file);
    munmap(board, sizeof *board);
}

static inline struct sm_module *sender(void)
{
    return sm_module(r[FROM]->btl);
}
static inline uint64_t address(const void *x)
{
    return (uint64_t)(uintptr_t)x;
}
static inline int put(const void *local, const void *remote, size_t len, uint32_t word, struct waiting *w)
{
    *w = (struct waiting){.op.done = on_done};
    return r[FROM]->btl->rdma->put_notify(ep, local, address(remote), in.reg.key, len, NULL, word, &w->op);
}
static inline void progress(int rank)
{
    r[rank]->btl->ops->progress(r[rank]->btl);
}
/* Until the notice is here; done has been called once, or put said that it would not be. */
static inline void put_all(const void *local, char *remote, size_t len, uint32_t word)
{
    struct waiting w;
    uint32_t before = in.n;
    int rc;
    AWAIT((rc = put(local, remote, len, word, &w)) != STRATA_ERR_AGAIN, progress(TO));
    ck_assert(rc == STRATA_OK || rc == 1);
    ck_assert_int_eq(w.done, 0);
    AWAIT(in.n > before && (rc == 1 || w.done), (progress(FROM), progress(TO)));
    ck_assert_int_eq(w.done, rc != 1);
    ck_assert_int_eq(w.rc, STRATA_OK);
    ck_assert_uint_eq(in.n, before + 1);
    ck_assert_uint_eq(in.last, word);
}
static inline bool may_copy(void)
{
    return sm_peer(ep)->single_copy != SM_COPY_OFF;
}

#endif

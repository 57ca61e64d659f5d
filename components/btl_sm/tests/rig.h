/* A job of N ranks for the tests of btl_sm alone: an rte whose blobs lie in anonymous shared memory, so that ranks may
 * be threads, forked processes, or taken in turn by one thread. */
#ifndef SM_TEST_RIG_H
#define SM_TEST_RIG_H

#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "framework/base/context.h"
#include "components/btl_sm/sm.h"
#include "support/let_run.h"

#define RIG_MAX 16

/* Usable outside Check's tests too: measuring programs, other threads. */
#define RIG_CHECK(x)                                                                                                   \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

struct rig_board {
    int n;
    char job[32];
    _Atomic(int) ready[RIG_MAX];
    uint8_t card[RIG_MAX][256];
    size_t length[RIG_MAX];
    _Atomic(int) arrived;
    _Atomic(bool) open; /* ranks may come later, above the first n: rank R has the place of R % RIG_MAX */
};

struct rig_rank {
    struct st_rte rte;
    struct strata context;
    struct st_base_config base;
    struct sm_params par;
    struct rig_board *board;
    int local[RIG_MAX], n_local;
    struct st_btl *btl;
    int failures, last_failure;
};

extern const struct st_component st_component_btl_sm;

static inline struct rig_board *rig_board(int n)
{
    struct rig_board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    RIG_CHECK(b != MAP_FAILED);
    b->n = n;
    snprintf(b->job, sizeof b->job, "rig-%d", (int)getpid());
    return b;
}

static inline struct rig_rank *rig_of(struct st_rte *rte)
{
    return (struct rig_rank *)(void *)rte;
}
static inline int rig_put(struct st_rte *rte, const char *key, const void *blob, size_t n)
{
    struct rig_board *b = rig_of(rte)->board;
    (void)key;
    memcpy(b->card[rte->rank % RIG_MAX], blob, n);
    b->length[rte->rank % RIG_MAX] = n;
    atomic_store(&b->ready[rte->rank % RIG_MAX], 1);
    return STRATA_OK;
}
static inline int rig_get(struct st_rte *rte, int rank, const char *key, void **blob, size_t *n)
{
    struct rig_board *b = rig_of(rte)->board;
    (void)key;
    rank %= RIG_MAX;
    while (!atomic_load(&b->ready[rank]))
        let_run();
    *blob = malloc(b->length[rank]);
    memcpy(*blob, b->card[rank], b->length[rank]);
    *n = b->length[rank];
    return STRATA_OK;
}
static inline bool rig_is_local(struct st_rte *rte, int rank)
{
    return rank >= 0 && rank < (rig_of(rte)->board->open ? 1 << 20 : rte->size);
}
static inline const int *rig_local_ranks(struct st_rte *rte, int *n)
{
    *n = rig_of(rte)->n_local;
    return rig_of(rte)->local;
}

/* Default values from the rows, so that the tests see what users see. */
static inline void rig_defaults(struct sm_params *par)
{
    memset(par, 0, sizeof *par);
    for (size_t i = 0; i < st_component_btl_sm.n_params; i++) {
        const struct st_param *r = &st_component_btl_sm.params[i];
        char *end, *at = (char *)par + r->offset;
        long long v = strtoll(r->dflt, &end, 0);
        v *= *end == 'k' ? 1 << 10 : *end == 'm' ? 1 << 20 : 1;
        if (r->type == ST_PARAM_SIZE)
            *(size_t *)(void *)at = (size_t)v;
        else if (r->type == ST_PARAM_INT)
            *(int64_t *)(void *)at = v;
        else if (r->type == ST_PARAM_ENUM)
            for (int k = 0; r->choices[k]; k++)
                if (strcmp(r->choices[k], r->dflt) == 0)
                    *(int *)(void *)at = k;
    }
}

static inline void rig_peer_failed(void *arg, int rank, int rc, const char *reason)
{
    struct rig_rank *r = arg;
    (void)rank;
    (void)reason;
    r->failures++;
    r->last_failure = rc;
}

/* Fills r; the caller may change r->par before rig_open. */
static inline void rig_init(struct rig_rank *r, struct rig_board *b, int rank)
{
    static const struct st_rte_ops ops = {
        .put = rig_put, .get = rig_get, .is_local = rig_is_local, .local_ranks = rig_local_ranks};
    memset(r, 0, sizeof *r);
    r->rte = (struct st_rte){
        .ops = &ops, .context = &r->context, .rank = rank, .size = b->n, .job_id = b->job, .host = "here"};
    r->board = b;
    r->base.verbose = ST_LOG_ERROR - 1; /* tests provoke errors: quiet */
    r->context.base = &r->base;
    r->context.rte = &r->rte;
    r->n_local = b->n;
    for (int i = 0; i < b->n; i++)
        r->local[i] = i;
    rig_defaults(&r->par);
}

/* A rank of an open job that knows only itself at first. The caller may change r->par before rig_open. */
static inline void rig_init_alone(struct rig_rank *r, struct rig_board *b, int rank)
{
    rig_init(r, b, rank);
    b->open = true;
    r->rte.size = STRATA_RANKS_OPEN;
    r->n_local = 1;
    r->local[0] = rank;
}

static inline int rig_try_open(struct rig_rank *r)
{
    const struct st_btl_component_ops *ops = st_component_btl_sm.ops;
    struct st_btl **mods;
    size_t n;
    int rc = ops->open(&r->context, &st_component_btl_sm, &r->par, &mods, &n);
    if (rc != STRATA_OK)
        return rc;
    if (n == 0)
        return STRATA_ERR_UNSUPPORTED;
    r->btl = mods[0];
    r->btl->peer_failed = rig_peer_failed;
    r->btl->peer_failed_arg = r;
    free(mods);
    return STRATA_OK;
}
static inline void rig_open(struct rig_rank *r)
{
    RIG_CHECK(rig_try_open(r) == STRATA_OK);
}
static inline void rig_close(struct rig_rank *r)
{
    r->btl->ops->close(r->btl);
}
static inline struct st_btl_endpoint *rig_connect(struct rig_rank *r, int rank)
{
    struct st_btl_endpoint *ep = NULL;
    RIG_CHECK(r->btl->ops->connect(r->btl, rank, &ep) == STRATA_OK);
    return ep;
}
static inline void rig_fence(struct rig_rank *r)
{
    int n = atomic_fetch_add(&r->board->arrived, 1) + 1, goal = (n + r->board->n - 1) / r->board->n * r->board->n;
    while (atomic_load(&r->board->arrived) < goal)
        let_run();
}

#endif

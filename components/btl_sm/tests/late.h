/* A process that comes late, for the tests of peers that nobody knew of at the start: see rig.h. */
#ifndef SM_TEST_LATE_H
#define SM_TEST_LATE_H

#include "rig.h"
#include "support/await.h"

struct end {
    struct rig_rank r;
    struct st_btl_endpoint *ep; /* of the other end */
    uint32_t n, bad;
};

static inline void deliver(void *arg, const struct st_frag *f)
{
    struct end *e = arg;
    uint32_t from;
    memcpy(&from, f->hdr, sizeof from);
    e->bad += f->rank != (int)from;
    for (uint32_t i = 0; i < f->len; i++)
        e->bad += ((const uint8_t *)f->data)[i] != (uint8_t)(i + from);
    e->n++;
}

enum { ATTACH_TIMEOUT_MS = 50 }; /* of connects that find no room */

static inline struct end *end_new(struct rig_board *b, int rank, int64_t late)
{
    struct end *e = calloc(1, sizeof *e);
    rig_init_alone(&e->r, b, rank);
    e->r.par.late_peers = late;
    e->r.par.promote_after = 4;
    e->r.par.attach_timeout_ms = ATTACH_TIMEOUT_MS;
    return e;
}
static inline void end_open(struct end *e)
{
    rig_open(&e->r);
    e->r.btl->am[ST_AM_TEST].fn = deliver;
    e->r.btl->am[ST_AM_TEST].arg = e;
}
static inline struct end *end_opened(struct rig_board *b, int rank, int64_t late)
{
    struct end *e = end_new(b, rank, late);
    end_open(e);
    return e;
}
static inline void end_close(struct end *e)
{
    rig_close(&e->r);
    free(e);
}
static inline int end_send(struct end *e, struct st_btl_endpoint *ep, uint32_t len)
{
    uint32_t from = (uint32_t)e->r.rte.rank;
    uint8_t data[16384];
    for (uint32_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i + from);
    return e->r.btl->ops->send(ep, ST_AM_TEST, &from, sizeof from, data, len);
}
/* Enough empty polls that the seldom looks are made. */
static inline void idle(struct end *e, int looks)
{
    for (int i = 0; i < looks * 1024; i++)
        e->r.btl->ops->progress(e->r.btl);
}
static inline void receive(struct end *e, uint32_t n)
{
    AWAIT(e->n >= n, e->r.btl->ops->progress(e->r.btl));
    ck_assert_uint_eq(e->n, n);
    ck_assert_uint_eq(e->bad, 0);
}
static inline struct sm_module *mod(struct end *e)
{
    return sm_module(e->r.btl);
}
static inline uint32_t entries(struct end *e)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < mod(e)->n_dir; i++)
        n += atomic_load(&mod(e)->dir[i].name) != 0;
    return n;
}
static inline int mappings(void)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        n += strstr(line, "strata-sm") != NULL;
    if (f)
        fclose(f);
    return n;
}

#endif

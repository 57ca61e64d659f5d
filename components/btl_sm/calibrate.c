/* From which size single copy pays with a peer, by what copies take at its distance: measured, or taken over from the
 * peer's segment. How fast the kernel copies between processes and how fast a machine copies in its caches differ by
 * factors of ten. */
#define _GNU_SOURCE 1
#include "learn.h"
#include "single_copy.h"
#include "sm.h"

#include <sched.h>
#include <unistd.h>

#define ALONE_LEAST 1024u
#define ALONE_MOST  (4u << 20)

/* 64 KiB out of a ring, and into it. A side that has not been timed is as the other; before both, three copies within
 * one cache stand for a copy, since each line moves from cache to cache. */
static uint64_t sm_drain(const struct sm_copy_times *t)
{
    return t->ring ? t->ring : t->fill ? t->fill : t->cache * 3;
}

static uint64_t sm_fill(const struct sm_copy_times *t)
{
    return t->fill ? t->fill : sm_drain(t);
}

/* In a window the copies of both sides overlap: the slower one counts. */
static uint64_t sm_ring_time(const struct sm_copy_times *t)
{
    return sm_fill(t) > sm_drain(t) ? sm_fill(t) : sm_drain(t);
}

size_t sm_choose_rdma_min(const struct sm_copy_times *t, bool both_sides)
{
    /* Single copy by both sides takes a little over half the kernel's time; copies of messages were made by both. */
    uint64_t kernel = t->copy ? t->copy : t->kernel;
    uint64_t single = !both_sides ? kernel : t->copy ? kernel / 2 : kernel * 6 / 10;

    return single < sm_ring_time(t) ? SM_WHOLE : SM_COPY_NEVER;
}

/* The power of two next to a length; 0 for those that are as good as never. */
static uint32_t sm_step(uint64_t length)
{
    uint64_t step = ALONE_LEAST;

    while (step + step / 2 < length && step < ALONE_MOST)
        step *= 2;
    return step < ALONE_MOST ? (uint32_t)step : 0;
}

/* A fragment is copied twice, one copy after the other, and to ask and to answer are two more short messages. The
 * copies of several fragments overlap only while both ranks run, which a busy machine does not grant: as for one. */
static uint32_t sm_alone_pays_from(const struct sm_copy_times *t, uint32_t latency_ns)
{
    uint64_t kernel = t->small ? t->small : t->kernel;
    uint64_t twice = sm_fill(t) + sm_drain(t), once = kernel > t->call ? kernel - t->call : 1;

    return twice > once ? sm_step((t->call + 2 * latency_ns) * SM_WHOLE / (twice - once)) : 0;
}

/* Each value makes a table of its own in the layer above: hence the steps. What is longer than a stream may be is
 * announced in any case. */
uint32_t sm_choose_alone(const struct sm_copy_times *t, const struct st_btl *btl)
{
    uint32_t from = btl->facts.fixed ? 0 : sm_alone_pays_from(t, btl->facts.latency_ns);

    return from && !t->ring && from <= btl->facts.ask_cost ? btl->facts.ask_cost + 1 : from;
}

/* More ranks here than processors that they may use: the two ends of a ring seldom run at the same time, and a copy
 * that one side makes alone is worth more than its speed. */
static bool sm_crowded(const struct sm_module *m)
{
    cpu_set_t mine, parents;
    int n, n_local = 1;

    CPU_ZERO(&mine);
    CPU_ZERO(&parents); /* a bound rank's launcher may use what it deals out */
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return false;
    if (sched_getaffinity(getppid(), sizeof parents, &parents) == 0)
        CPU_OR(&mine, &mine, &parents);
    n = CPU_COUNT(&mine);
    m->rte->ops->local_ranks(m->rte, &n_local);
    return n > 0 && n_local > n;
}

static void sm_calibrated(struct sm_module *m, enum sm_distance d, const struct sm_copy_times *t)
{
    struct sm_costs *costs = &m->costs[d];

    costs->times = *t;
    costs->due = SM_FIRST_TRIAL;
    costs->rdma = costs->chosen = sm_choose_rdma_min(t, m->par->single_copy != SM_COPY_ONE_SIDED);
    costs->alone = sm_choose_alone(t, &m->btl);
    sm_facts_publish(&m->header->facts[d], t);
}

void sm_calibrate(struct sm_peer *p, uint64_t peer_base)
{
    struct sm_module *m = sm_module(p->ep.btl);
    enum sm_distance d = sm_distance_of(m->header->package, *(const volatile int32_t *)&p->header->package);
    struct sm_costs *costs = &m->costs[d];
    struct sm_copy_times t;
    struct sm_layout at;

    p->distance = (uint8_t)d;
    if (costs->known || m->par->rdma_min || st_tuning(m->btl.context) == ST_TUNE_OFF)
        return;
    costs->known = true;
    costs->steady = st_tuning(m->btl.context) == ST_TUNE_ONLINE;
    if (sm_crowded(m))
        return;
    costs->taken_over = sm_facts_read(&p->header->facts[d], &t);
    if (costs->taken_over || (sm_layout_make(&p->geometry, &at) == STRATA_OK && at.coop - at.queue >= SM_FACTS_ROOM &&
                              sm_facts_measure(p->pid, peer_base + at.queue, &t)))
        sm_calibrated(m, d, &t);
}

void sm_facts_of(const struct st_btl_endpoint *ep, struct st_btl_facts *facts)
{
    const struct sm_module *m = sm_module(ep->btl);
    const struct sm_costs *costs = &m->costs[sm_peer((struct st_btl_endpoint *)(uintptr_t)ep)->distance];

    facts->rdma_cost = costs->rdma;
    facts->alone_cost = costs->alone;
}

/* From which size single copy pays with a peer, by what copies take at its distance: measured, or taken over from the
 * peer's segment. How fast the kernel copies between processes and how fast a machine copies in its caches differ by
 * factors of ten. */
#define _GNU_SOURCE 1
#include "single_copy.h"
#include "sm.h"

#include <sched.h>
#include <strata/sdk/worker.h>
#include <unistd.h>

#define SAMPLE      65536u
#define ALONE_LEAST 1024u
#define ALONE_MOST  (4u << 20)
#define READ_EVERY  8u /* long fragments sent; a power of two */

/* The time of 64 KiB through a ring: both sides copy, overlapped, and each line moves from cache to cache. Until
 * fragments have been timed, three copies within one cache stand for it. */
static uint64_t sm_ring_time(const struct sm_copy_times *t)
{
    return t->ring ? t->ring : t->cache * 3;
}

size_t sm_choose_rdma_min(const struct sm_copy_times *t, bool both_sides)
{
    /* Single copy by both sides takes a little over half the kernel's time. */
    uint64_t single = both_sides ? t->kernel * 6 / 10 : t->kernel;

    return single < sm_ring_time(t) ? SAMPLE : (size_t)1 << 40; /* never */
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
    uint64_t twice = 2 * sm_ring_time(t), once = t->kernel > t->call ? t->kernel - t->call : 1;

    return twice > once ? sm_step((t->call + 2 * latency_ns) * SAMPLE / (twice - once)) : 0;
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
    costs->rdma = sm_choose_rdma_min(t, m->par->single_copy != SM_COPY_ONE_SIDED);
    costs->alone = sm_choose_alone(t, &m->btl);
    sm_facts_publish(&m->header->facts[d], t);
}

/* The length in use, kept between the choices for the kernel's time and for one that is longer by an eighth; 0: never.
 */
static uint32_t sm_alone_kept(uint32_t used, uint32_t least, uint32_t most)
{
    return used - 1 < least - 1 ? least : used - 1 > most - 1 ? most : used;
}

/* The time of a ring is new. */
static void sm_costs_learnt(struct sm_module *m, enum sm_distance d)
{
    struct sm_costs *costs = &m->costs[d];
    bool both = m->par->single_copy != SM_COPY_ONE_SIDED, first = costs->times.ring == 0;
    struct sm_copy_times t = costs->times, slower;
    size_t rdma;
    uint32_t alone;

    t.ring = costs->times.ring = costs->ring.ring;
    slower = t;
    slower.kernel += t.kernel / 8;
    rdma = sm_choose_rdma_min(&t, both);
    if (rdma != sm_choose_rdma_min(&slower, both))
        rdma = costs->rdma;
    alone = sm_choose_alone(&t, &m->btl);
    if (!first)
        alone = sm_alone_kept(costs->alone, alone, sm_choose_alone(&slower, &m->btl));
    if (rdma == costs->rdma && alone == costs->alone)
        return;
    costs->rdma = rdma;
    costs->alone = alone;
    m->work += !costs->changed;
    costs->changed = true;
}

void sm_ring_took(struct sm_module *m, enum sm_distance d, uint32_t bytes, uint64_t ns)
{
    struct sm_costs *costs = &m->costs[d];

    if (costs->times.kernel == 0 || !sm_ring_times_add(&costs->ring, bytes, ns))
        return;
    costs->timed = true;
    sm_costs_learnt(m, d);
    sm_facts_publish_ring(&m->header->facts[d], costs->ring.ring);
}

/* A rank that only sends long messages to this distance learns from the receivers what their copies take. */
void sm_ring_sent(struct sm_peer *p)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_costs *costs = &m->costs[p->distance];
    uint32_t ring;

    if (costs->timed || costs->times.kernel == 0 || ++m->long_sent % READ_EVERY)
        return;
    ring = sm_facts_read_ring(&p->header->facts[p->distance]);
    if (ring && sm_ring_times_add(&costs->ring, SAMPLE, ring))
        sm_costs_learnt(m, (enum sm_distance)p->distance);
}

void sm_costs_tell(struct sm_module *m)
{
    for (int d = 0; d < SM_DISTANCES; d++) {
        if (!m->costs[d].changed)
            continue;
        m->costs[d].changed = false;
        m->work--;
        for (struct sm_peer *p = m->peers; p && m->btl.worker; p = p->next)
            if (p->connected && p->distance == d)
                st_worker_facts_changed(m->btl.worker, p->ep.rank);
    }
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

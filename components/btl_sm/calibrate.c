/* From which size single copy pays with a peer, by what copies take at its distance: measured, or taken over from the
 * peer's segment. How fast the kernel copies between processes and how fast a machine copies in its caches differ by
 * factors of ten. */
#define _GNU_SOURCE 1
#include "single_copy.h"
#include "sm.h"

#include <sched.h>
#include <unistd.h>

#define SAMPLE 65536u

size_t sm_choose_rdma_min(const struct sm_copy_times *t, bool both_sides)
{
    /* Streamed through a ring both sides copy, overlapped, and each line moves from cache to cache: until fragments
     * have been timed three times a copy within one cache, as was measured once. Single copy by both sides takes a
     * little over half the kernel's time. */
    uint64_t single = both_sides ? t->kernel * 6 / 10 : t->kernel;
    uint64_t ring = t->ring ? t->ring : t->cache * 3;

    return single < ring ? SAMPLE : (size_t)1 << 40; /* never */
}

/* A fragment that travels alone is copied twice, one copy after the other, and each moves lines from cache to cache as
 * above. To ask and to answer are two more short messages. */
uint32_t sm_choose_alone(const struct sm_copy_times *t, uint32_t latency_ns)
{
    uint64_t twice = 6 * t->cache, once = t->kernel > t->call ? t->kernel - t->call : 1;

    return twice > once ? (uint32_t)((t->call + 2 * latency_ns) * SAMPLE / (twice - once)) : 0;
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
    costs->alone = m->btl.facts.fixed ? 0 : sm_choose_alone(t, m->btl.facts.latency_ns);
    sm_facts_publish(&m->header->facts[d], t);
}

/* Between the two limits what is in use stays. */
void sm_ring_took(struct sm_module *m, enum sm_distance d, uint32_t bytes, uint64_t ns)
{
    struct sm_costs *costs = &m->costs[d];
    bool both = m->par->single_copy != SM_COPY_ONE_SIDED;
    struct sm_copy_times t = costs->times, slower;
    size_t choice;

    if (t.kernel == 0 || !sm_ring_times_add(&costs->ring, bytes, ns))
        return;
    t.ring = costs->times.ring = costs->ring.ring;
    slower = t;
    slower.kernel += t.kernel / 8;
    choice = sm_choose_rdma_min(&t, both);
    if (choice == sm_choose_rdma_min(&slower, both))
        costs->rdma = choice;
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

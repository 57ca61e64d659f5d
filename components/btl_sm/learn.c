/* Costs learnt from messages: see learn.h. */
#include "learn.h"

#include <strata/sdk/clock.h>
#include <strata/sdk/worker.h>
#include "single_copy.h"
#include "sm.h"

#define PART_LEAST    16384u              /* bytes of the shortest copy by the kernel that counts */
#define TRY_SHARE     64u                 /* bytes of the way in use, times 2^patience, for one of a trial */
#define TRY_BYTES     ((uint64_t)1 << 20) /* least bytes of a trial */
#define TRY_NS        20000000u           /* a trial ends then, if nothing comes by the way that it tries */
#define PATIENCE_MOST 4u
#define DUE_MOST      ((uint64_t)64 << 30)

/* The length in use, kept between the choices for the kernel's time and for one that is longer by an eighth; 0: never.
 */
static uint32_t sm_alone_kept(uint32_t used, uint32_t least, uint32_t most)
{
    return used - 1 < least - 1 ? least : used - 1 > most - 1 ? most : used;
}

/* These costs are in use from the next progress on. */
static void sm_costs_use(struct sm_module *m, struct sm_costs *costs, size_t rdma, uint32_t alone)
{
    if (rdma == costs->rdma && alone == costs->alone)
        return;
    costs->rdma = rdma;
    costs->alone = alone;
    m->work += !costs->changed;
    costs->changed = true;
}

/* A time that a trial has not brought again stays as it was; the sender's part counts as the receiver's until it is
 * known.
 */
static void sm_latest(struct sm_costs *costs)
{
    struct sm_copy_times *t = &costs->times;

    if (costs->ring.ns) {
        t->ring = costs->ring.ns;
        t->fill = costs->fill.ns;
    }
    if (costs->copy.ns)
        t->copy = costs->copy.ns;
    if (costs->small.ns)
        t->small = costs->small.ns;
    if (costs->rdma == SM_COPY_NEVER ? costs->ring.ns : costs->copy.ns)
        costs->result = true;
}

/* A time is new. */
static void sm_costs_learnt(struct sm_module *m, struct sm_costs *costs)
{
    bool both = m->par->single_copy != SM_COPY_ONE_SIDED, first = costs->times.ring == 0;
    struct sm_copy_times slower;
    size_t rdma;
    uint32_t alone;

    sm_latest(costs);
    slower = costs->times;
    slower.kernel += slower.kernel / 8;
    slower.copy += slower.copy / 8;
    slower.small += slower.small / 8;
    rdma = sm_choose_rdma_min(&costs->times, both);
    if (rdma == sm_choose_rdma_min(&slower, both) && rdma != costs->chosen) {
        costs->chosen = rdma;
        costs->patience = 0;
        costs->due = SM_FIRST_TRIAL;
    }
    alone = sm_choose_alone(&costs->times, &m->btl);
    if (!first)
        alone = sm_alone_kept(costs->alone, alone, sm_choose_alone(&slower, &m->btl));
    sm_costs_use(m, costs, costs->tries ? costs->rdma : costs->chosen, alone);
}

void sm_ring_took(struct sm_module *m, enum sm_distance d, uint32_t bytes, uint64_t ns)
{
    struct sm_costs *costs = &m->costs[d];

    if (costs->times.kernel == 0 || !sm_part_times_add(&costs->ring, bytes, ns))
        return;
    costs->drains = true;
    sm_costs_learnt(m, costs);
    sm_facts_publish_part(&m->header->facts[d].ring, costs->ring.ns);
}

/* A process without times of its own reads those of the other end. True: t->ns is new. */
static bool sm_told(struct sm_part_times *t, bool own, const _Atomic(uint32_t) *from)
{
    uint32_t ns = own ? 0 : sm_facts_read_part(from);

    return ns && sm_part_times_add(t, SM_WHOLE, ns);
}

void sm_fill_told(struct sm_module *m, const struct sm_peer *p)
{
    struct sm_costs *costs = &m->costs[p->distance];

    if (costs->times.kernel && sm_told(&costs->fill, costs->fills, &p->header->facts[p->distance].fill))
        sm_costs_learnt(m, costs);
}

void sm_ring_filled(struct sm_peer *p, uint32_t bytes, uint64_t ns)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_costs *costs = &m->costs[p->distance];
    bool told, filled;

    if (costs->times.kernel == 0)
        return;
    told = sm_told(&costs->ring, costs->drains, &p->header->facts[p->distance].ring);
    filled = sm_part_times_add(&costs->fill, bytes, ns);
    if (filled) {
        costs->fills = true;
        sm_facts_publish_part(&m->header->facts[p->distance].fill, costs->fill.ns);
    }
    if ((told || filled) && costs->ring.ns) /* messages alone wait for the time of both copies */
        sm_costs_learnt(m, costs);
}

void sm_copied(struct sm_peer *p, uint64_t bytes, uint64_t ns, uint64_t whole)
{
    struct sm_module *m = sm_module(p->ep.btl);
    struct sm_costs *costs = &m->costs[p->distance];

    if (costs->times.kernel == 0)
        return;
    if (bytes >= PART_LEAST && bytes < UINT32_MAX &&
        sm_part_times_add(whole > SM_WHOLE ? &costs->copy : &costs->small, (uint32_t)bytes, ns))
        sm_costs_learnt(m, costs);
    sm_costs_moved(m, (enum sm_distance)p->distance, bytes, false);
}

/* ---- trials of the way that is not in use ---- */

static void sm_try(struct sm_module *m, struct sm_costs *costs)
{
    bool ring = costs->rdma != SM_COPY_NEVER;

    costs->tries = true;
    costs->result = false;
    costs->tried = 0;
    costs->until = st_now_ns() + TRY_NS;
    m->work++;
    if (ring) {
        costs->ring = costs->fill = (struct sm_part_times){.n = 0};
        costs->drains = costs->fills = false;
    } else {
        costs->copy = (struct sm_part_times){.n = 0};
    }
    sm_costs_use(m, costs, ring ? SM_COPY_NEVER : SM_WHOLE, costs->alone);
}

/* A way that stays in use is questioned less often. */
static void sm_tried(struct sm_module *m, struct sm_costs *costs)
{
    if (costs->chosen == costs->rdma)
        costs->due = SM_FIRST_TRIAL;
    else if (costs->result && costs->patience < PATIENCE_MOST)
        costs->patience++;
    costs->tries = false;
    m->work--;
    sm_costs_use(m, costs, costs->chosen, costs->alone);
}

/* Messages that were answered in a trial come after its end, too: each byte by the other way counts. */
void sm_costs_moved(struct sm_module *m, enum sm_distance d, uint64_t bytes, bool by_ring)
{
    struct sm_costs *costs = &m->costs[d];
    bool ring = costs->rdma == SM_COPY_NEVER, other = costs->tries ? by_ring == ring : by_ring != ring;

    if (costs->times.kernel == 0 || costs->steady)
        return;
    if (other && costs->due < DUE_MOST)
        costs->due += bytes * TRY_SHARE << costs->patience;
    if (costs->tries) {
        costs->tried += other ? bytes : 0;
        if (costs->tried >= TRY_BYTES && costs->result)
            sm_tried(m, costs);
    } else if (!other) {
        costs->due -= bytes < costs->due ? bytes : costs->due;
        if (costs->due == 0)
            sm_try(m, costs);
    }
}

static void sm_trial_ends(struct sm_module *m, struct sm_costs *costs)
{
    if (costs->tries && st_now_ns() >= costs->until)
        sm_tried(m, costs);
}

void sm_costs_tell(struct sm_module *m)
{
    for (int d = 0; d < SM_DISTANCES; d++) {
        sm_trial_ends(m, &m->costs[d]);
        if (!m->costs[d].changed)
            continue;
        m->costs[d].changed = false;
        m->work--;
        for (struct sm_peer *p = m->peers; p && m->btl.worker; p = p->next)
            if (p->connected && p->distance == d)
                st_worker_facts_changed(m->btl.worker, p->ep.rank);
    }
}

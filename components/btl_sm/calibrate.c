/* From which size single copy pays, measured once per process: how fast the kernel copies between processes against
 * how fast this machine copies in its caches. The two differ by factors of ten between machines and kernels. */
#define _GNU_SOURCE 1
#include "single_copy.h"
#include "sm.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <strata/sdk/clock.h>

#define SAMPLE 65536u
#define ROUNDS 4

size_t sm_choose_rdma_min(const struct sm_copy_times *t, bool both_sides)
{
    /* Streamed through a ring both sides copy, overlapped, and each line moves from cache to cache: measured three
     * times a copy within one cache. Single copy by both sides takes a little over half the kernel's time. */
    uint64_t single = both_sides ? t->kernel * 6 / 10 : t->kernel;

    return single < t->cache * 3 ? SAMPLE : (size_t)1 << 40; /* never */
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

/* Limits of the user's stand: what they let pass is not asked for. */
static bool sm_limits_are_the_users(const struct sm_params *par)
{
    return par->rdma_min || par->eager_limit != SM_EAGER_LIMIT_KIB << 10 ||
           par->stream_limit != SM_STREAM_LIMIT_KIB << 10;
}

/* The least of some tries. False: the kernel refuses. */
static bool sm_time_copies(uint8_t *a, struct sm_copy_times *least)
{
    *least = (struct sm_copy_times){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t from = (uint64_t)(uintptr_t)(a + SAMPLE), t0 = st_now_ns(), t1, t2, t3;

        if (sm_copy_bytes((uint32_t)getpid(), SM_COPY_GET, a, from, SAMPLE) != STRATA_OK)
            return false;
        t1 = st_now_ns();
        memcpy(a, a + SAMPLE, SAMPLE);
        __asm__ volatile("" : : "r"(a) : "memory");
        t2 = st_now_ns();
        if (sm_copy_bytes((uint32_t)getpid(), SM_COPY_GET, a, from, 8) != STRATA_OK)
            return false;
        t3 = st_now_ns();
        least->kernel = t1 - t0 < least->kernel ? t1 - t0 : least->kernel;
        least->cache = t2 - t1 < least->cache ? t2 - t1 : least->cache;
        least->call = t3 - t2 < least->call ? t3 - t2 : least->call;
    }
    return true;
}

void sm_calibrate(struct sm_module *m)
{
    struct sm_copy_times t;
    uint8_t *a;
    bool timed;

    if (m->calibrated || m->par->rdma_min)
        return;
    m->calibrated = true;
    if (sm_crowded(m)) {
        m->btl.facts.rdma_cost = SAMPLE;
        return;
    }
    a = mmap(NULL, (size_t)2 * SAMPLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (a == MAP_FAILED)
        return;
    timed = sm_time_copies(a, &t);
    munmap(a, (size_t)2 * SAMPLE);
    if (!timed)
        return;
    m->kernel_ns = (uint32_t)t.kernel;
    m->cache_ns = (uint32_t)t.cache;
    m->btl.facts.rdma_cost = sm_choose_rdma_min(&t, m->par->single_copy != SM_COPY_ONE_SIDED);
    if (!sm_limits_are_the_users(m->par))
        m->btl.facts.alone_cost = sm_choose_alone(&t, m->btl.facts.latency_ns);
}

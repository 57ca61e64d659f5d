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

size_t sm_choose_rdma_min(uint64_t kernel_ns, uint64_t cache_ns, bool both_sides)
{
    /* Streamed through a ring both sides copy, overlapped, and each line moves from cache to cache: measured three
     * times a copy within one cache. Single copy by both sides takes a little over half the kernel's time. */
    uint64_t single = both_sides ? kernel_ns * 6 / 10 : kernel_ns;

    return single < cache_ns * 3 ? SAMPLE : (size_t)1 << 40; /* never */
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

void sm_calibrate(struct sm_module *m)
{
    uint64_t kernel = UINT64_MAX, cache = UINT64_MAX;
    uint8_t *a;

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
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t t0 = st_now_ns(), t1, t2;
        int rc = sm_copy_bytes((uint32_t)getpid(), SM_COPY_GET, a, (uint64_t)(uintptr_t)(a + SAMPLE), SAMPLE);
        t1 = st_now_ns();
        memcpy(a, a + SAMPLE, SAMPLE);
        __asm__ volatile("" : : "r"(a) : "memory");
        t2 = st_now_ns();
        if (rc != STRATA_OK)
            break;
        kernel = t1 - t0 < kernel ? t1 - t0 : kernel;
        cache = t2 - t1 < cache ? t2 - t1 : cache;
    }
    munmap(a, (size_t)2 * SAMPLE);
    if (kernel == UINT64_MAX)
        return;
    m->kernel_ns = (uint32_t)kernel;
    m->cache_ns = (uint32_t)cache;
    m->btl.facts.rdma_cost = sm_choose_rdma_min(kernel, cache, m->par->single_copy != SM_COPY_ONE_SIDED);
}

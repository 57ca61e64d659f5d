/* See copy_facts.h. */
#define _GNU_SOURCE 1
#include "copy_facts.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include <strata/sdk/clock.h>

#define PART     SM_FACTS_ROOM
#define N_PARTS  (SM_WHOLE / PART)
#define SAMPLES  3u
#define TRIES    12u
#define BLOCK    4u          /* timed parts of messages */
#define NS_LIMIT 1000000000u /* no copy of these lengths takes a second */
#define N_PATH   96

static int32_t facts_package_of(int processor)
{
    char path[N_PATH];
    int package = SM_ROAMS;
    FILE *f;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", processor);
    f = fopen(path, "re");
    if (!f)
        return SM_ROAMS;
    if (fscanf(f, "%d", &package) != 1)
        package = SM_ROAMS;
    fclose(f);
    return package;
}

/* Numbers of processors run through a package, or alternate between packages: the first and the last tell. */
int32_t sm_package(void)
{
    cpu_set_t mine;
    int first = -1, last = -1;
    int32_t package;

    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return SM_ROAMS;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &mine)) {
            first = first < 0 ? i : first;
            last = i;
        }
    if (first < 0)
        return SM_ROAMS;
    package = facts_package_of(first);
    return first == last || facts_package_of(last) == package ? package : SM_ROAMS;
}

enum sm_distance sm_distance_of(int32_t mine, int32_t theirs)
{
    return mine == theirs && mine != SM_ROAMS ? SM_NEAR : SM_ANY;
}

static uint32_t facts_word(uint64_t ns)
{
    return ns == 0 ? 1 : ns < NS_LIMIT ? (uint32_t)ns : NS_LIMIT - 1;
}

void sm_facts_publish(struct sm_copy_facts *to, const struct sm_copy_times *t)
{
    to->kernel = facts_word(t->kernel);
    to->cache = facts_word(t->cache);
    to->call = facts_word(t->call);
    to->kernel_16k = facts_word(t->kernel_16k);
    to->cold_16k = facts_word(t->cold_16k);
    to->cold_64k = facts_word(t->cold_64k);
    atomic_store_explicit(&to->known, 1, memory_order_release); /* pairs with the acquire in sm_facts_read */
}

bool sm_facts_read(const struct sm_copy_facts *from, struct sm_copy_times *out)
{
    const volatile struct sm_copy_facts *f = from; /* each word once: the owner may be hostile */
    bool sane = true;
    uint64_t word[6];

    if (atomic_load_explicit(&from->known, memory_order_acquire) != 1)
        return false;
    word[0] = f->kernel;
    word[1] = f->cache;
    word[2] = f->call;
    word[3] = f->kernel_16k;
    word[4] = f->cold_16k;
    word[5] = f->cold_64k;
    for (int i = 0; i < 6; i++)
        sane = sane && word[i] > 0 && word[i] < NS_LIMIT;
    *out = (struct sm_copy_times){word[0], word[1], word[2], word[3], word[4], word[5], 0, 0, 0, 0};
    return sane;
}

void sm_facts_publish_part(_Atomic(uint32_t) *to, uint32_t ns)
{
    uint32_t told = atomic_load_explicit(to, memory_order_relaxed);

    if ((ns < told ? told - ns : ns - told) > told / 8)
        atomic_store_explicit(to, ns, memory_order_relaxed);
}

uint32_t sm_facts_read_part(const _Atomic(uint32_t) *from)
{
    uint32_t ns = atomic_load_explicit(from, memory_order_relaxed);

    return ns < NS_LIMIT ? ns : 0;
}

/* A context switch in a part spoils that one; of four the least is seldom spoilt. */
bool sm_part_times_add(struct sm_part_times *t, uint32_t bytes, uint64_t ns)
{
    uint32_t whole = facts_word(ns * SM_WHOLE / bytes);

    t->least = t->n == 0 || whole < t->least ? whole : t->least;
    if (++t->n < BLOCK)
        return false;
    t->n = 0;
    /* Noise is averaged out; a change, as of processors that move apart, is taken over. */
    if (t->ns == 0 || t->least > t->ns + t->ns / 2 || t->least < t->ns - t->ns / 3)
        t->ns = t->least;
    else
        t->ns = t->ns - t->ns / BLOCK + t->least / BLOCK;
    return true;
}

/* ---- measuring ---- */

/* `parts` times the same 16 KiB of the other's memory, side by side, by one call. */
static bool facts_fetch(uint32_t pid, uint8_t *to, uint64_t remote, size_t length, unsigned parts)
{
    struct iovec here = {to, length * parts}, there[N_PARTS];

    for (unsigned i = 0; i < parts; i++)
        there[i] = (struct iovec){(void *)(uintptr_t)remote, length};
    return process_vm_readv((pid_t)pid, &here, 1, there, parts, 0) == (ssize_t)(length * parts);
}

static long facts_switches(void)
{
    struct rusage r;

    return getrusage(RUSAGE_THREAD, &r) == 0 ? r.ru_nvcsw + r.ru_nivcsw : 0;
}

static void facts_least(uint64_t *least, uint64_t ns)
{
    if (*least == 0 || ns < *least)
        *least = ns;
}

static bool facts_sample(uint32_t pid, uint64_t remote, uint8_t *a, struct sm_copy_times *t)
{
    uint64_t at[5];

    at[0] = st_now_ns();
    if (!facts_fetch(pid, a, remote, PART, N_PARTS))
        return false;
    at[1] = st_now_ns();
    memcpy(a, a + SM_WHOLE, SM_WHOLE);
    __asm__ volatile("" : : "r"(a) : "memory");
    at[2] = st_now_ns();
    if (!facts_fetch(pid, a, remote, 8, 1))
        return false;
    at[3] = st_now_ns();
    if (!facts_fetch(pid, a, remote, PART, 1))
        return false;
    at[4] = st_now_ns();
    *t = (struct sm_copy_times){
        .kernel = at[1] - at[0], .cache = at[2] - at[1], .call = at[3] - at[2], .kernel_16k = at[4] - at[3]};
    return true;
}

/* The first copies of all: the other's lines are in its caches, if anywhere. */
static bool facts_cold(uint32_t pid, uint64_t remote, uint8_t *a, struct sm_copy_times *out)
{
    uint64_t t0 = st_now_ns(), t1;

    if (!facts_fetch(pid, a, remote, PART, 1))
        return false;
    t1 = st_now_ns();
    if (!facts_fetch(pid, a + SM_WHOLE, remote, PART, N_PARTS))
        return false;
    out->cold_16k = t1 - t0;
    out->cold_64k = st_now_ns() - t1;
    return true;
}

static bool facts_take(uint32_t pid, uint64_t remote, uint8_t *a, struct sm_copy_times *out)
{
    struct sm_copy_times t;
    unsigned good = 0;

    *out = (struct sm_copy_times){0};
    if (!facts_cold(pid, remote, a, out))
        return false;
    for (unsigned i = 0; i < TRIES && good < SAMPLES; i++) {
        long before = facts_switches();
        if (!facts_sample(pid, remote, a, &t))
            return false;
        if (facts_switches() != before && (good || i + SAMPLES < TRIES))
            continue; /* another thread ran in between, and tries are left */
        good++;
        facts_least(&out->kernel, t.kernel);
        facts_least(&out->cache, t.cache);
        facts_least(&out->call, t.call);
        facts_least(&out->kernel_16k, t.kernel_16k);
    }
    return true;
}

bool sm_facts_measure(uint32_t pid, uint64_t remote, struct sm_copy_times *out)
{
    uint8_t *a =
        mmap(NULL, (size_t)2 * SM_WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    bool measured;

    if (a == MAP_FAILED)
        return false;
    measured = facts_take(pid, remote, a, out);
    munmap(a, (size_t)2 * SM_WHOLE);
    return measured;
}

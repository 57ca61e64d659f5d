/* Does a source see what it promises? Each kind of event is fired by the calls that a program would use, on memory of
 * our own, and its report is waited for. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <strata/sdk/process_memory.h>
#include "framework/memory/monitor.h"

enum {
    MARK = 0x5a,
    ELF_MARK = 0x7f,       /* what a library's first page begins with */
    LARGE = (32 << 20) + 1 /* above what malloc ever takes from its heap, and learns from */
};

struct probe {
    struct st_memory_listener base;
    struct st_memory_source *source;
    pthread_t thread;
    size_t page;
    unsigned char mark;          /* what its first byte holds */
    _Atomic(uintptr_t) from, to; /* that must be reported */
    _Atomic(bool) seen;
};

/* Whether the page is mapped and is still the one that was marked. */
static bool self_test_still_there(const struct probe *p, uintptr_t page)
{
    unsigned char in_core;
    return mincore((void *)page, p->page, &in_core) == 0 && *(volatile unsigned char *)page == p->mark;
}

static void self_test_note(struct st_memory_listener *listener, uintptr_t from, uintptr_t to)
{
    struct probe *p = (struct probe *)listener;
    uintptr_t mine = atomic_load(&p->from);
    if (from > mine || to < atomic_load(&p->to) || mine == 0)
        return;
    /* Other threads report other things, and perhaps everything (a fork): that is no answer. */
    if (p->source->before && (!pthread_equal(pthread_self(), p->thread) || !self_test_still_there(p, mine)))
        return;
    atomic_store(&p->seen, true);
}

/* From now on [from, from + bytes) is waited for. False: the source refuses such memory, so none is kept. */
static bool self_test_expect_as_it_is(struct probe *p, void *from, size_t bytes)
{
    uintptr_t at = (uintptr_t)from;
    p->mark = *(volatile unsigned char *)at;
    atomic_store(&p->seen, false);
    if (p->source->cover && !p->source->cover(p->source, at, at + bytes))
        return false;
    atomic_store(&p->to, at + bytes);
    atomic_store(&p->from, at);
    return true;
}

static bool self_test_expect(struct probe *p, void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += p->page)
        ((volatile unsigned char *)from)[i] = MARK;
    return self_test_expect_as_it_is(p, from, bytes);
}

/* The event is over. */
static bool self_test_answered(struct probe *p)
{
    bool all = st_memory_steady(p->source) || (p->source->settle && p->source->settle(p->source, p->from, p->to));
    atomic_store(&p->from, 0);
    return all && atomic_load(&p->seen);
}

static bool self_test_vouched(const struct probe *p, enum st_memory_event event)
{
    return p->source->vouches && p->source->vouches(p->source, event);
}

static void *self_test_map(const struct probe *p, size_t pages)
{
    void *at = mmap(NULL, pages * p->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* ---- one function for each group of events ---------------------------------------------------------------------- */

static bool self_test_try_unmap(struct probe *p)
{
    char *at = self_test_map(p, 2);
    if (!at || !self_test_expect(p, at, 2 * p->page))
        return false;
    munmap(at, 2 * p->page);
    return self_test_answered(p);
}

static bool self_test_try_move(struct probe *p)
{
    char *at = self_test_map(p, 2), *to = self_test_map(p, 2);
    if (!at || !to || !self_test_expect(p, at, 2 * p->page))
        return false;
    if (mremap(at, 2 * p->page, 2 * p->page, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
        return false;
    bool seen = self_test_answered(p);
    munmap(to, 2 * p->page);
    return seen;
}

static bool self_test_try_shrink(struct probe *p)
{
    char *at = self_test_map(p, 3);
    if (!at || !self_test_expect(p, at + 2 * p->page, p->page) || mremap(at, 3 * p->page, 2 * p->page, 0) == MAP_FAILED)
        return false;
    bool seen = self_test_answered(p);
    munmap(at, 2 * p->page);
    return seen;
}

static bool self_test_try_map_over(struct probe *p)
{
    char *at = self_test_map(p, 2);
    if (!at || !self_test_expect(p, at, 2 * p->page) ||
        mmap(at, 2 * p->page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    bool seen = self_test_answered(p);
    munmap(at, 2 * p->page);
    return seen;
}

/* An advice that the kernel does not know is reported all the same. */
static bool self_test_try_advice(struct probe *p, int advice)
{
    char *at = self_test_map(p, 2);
    if (!at || !self_test_expect(p, at, 2 * p->page))
        return false;
    (void)madvise(at, 2 * p->page, advice);
    bool seen = self_test_answered(p);
    munmap(at, 2 * p->page);
    return seen;
}

static int self_test_segment(const struct probe *p)
{
    return shmget(IPC_PRIVATE, 2 * p->page, IPC_CREAT | 0600);
}

static bool self_test_try_shmdt(struct probe *p)
{
    int id = self_test_segment(p);
    if (id < 0)
        return self_test_vouched(p, ST_MEMORY_SHMDT);
    char *at = shmat(id, NULL, 0);
    (void)shmctl(id, IPC_RMID, NULL);
    if (at == (char *)-1)
        return self_test_vouched(p, ST_MEMORY_SHMDT);
    bool kept = self_test_expect(p, at, 2 * p->page);
    (void)shmdt(at);
    return !kept || self_test_answered(p);
}

static bool self_test_try_shm_remap(struct probe *p)
{
    int id = self_test_segment(p);
    if (id < 0)
        return self_test_vouched(p, ST_MEMORY_SHM_REMAP);
    char *at = self_test_map(p, 2);
    bool seen =
        at && self_test_expect(p, at, 2 * p->page) && shmat(id, at, SHM_REMAP) == (void *)at && self_test_answered(p);
    (void)shmctl(id, IPC_RMID, NULL);
    if (at && shmdt(at) != 0)
        munmap(at, 2 * p->page);
    return seen;
}

/* The heap's end is everybody's: it is only moved while there is nobody else. */
static bool self_test_try_brk(struct probe *p)
{
    if (!__libc_single_threaded)
        return self_test_vouched(p, ST_MEMORY_BRK);
    char *end = sbrk((intptr_t)(3 * p->page));
    if (end == (char *)-1)
        return self_test_vouched(p, ST_MEMORY_BRK);
    char *whole = (char *)(((uintptr_t)end + p->page - 1) & ~(p->page - 1));
    bool kept = self_test_expect(p, whole, 2 * p->page);
    (void)sbrk(-(intptr_t)(3 * p->page));
    return !kept || self_test_answered(p);
}

/* Calls within the C library do not go where calls of it go. Not every malloc gives memory back; a tool's does so in a
 * way that nobody sees. */
static bool self_test_try_malloc(struct probe *p)
{
    char *block = st_memory_tool() ? NULL : malloc(LARGE);
    if (!block)
        return true; /* what can be fired was */
    uintptr_t whole = ((uintptr_t)block + p->page) & ~(p->page - 1);
    bool kept = self_test_expect(p, (void *)whole, p->page);
    free(block);
    unsigned char in_core;
    bool given_back = mincore((void *)whole, p->page, &in_core) != 0;
    bool seen = self_test_answered(p);
    return !kept || !given_back || seen;
}

/* Nor do those of the loader, which is tried with a part of the C library that nobody uses. Once: later, in the middle
 * of a look-up, somebody may hold the loader's lock and wait for us. */
static bool self_test_try_dlclose(struct probe *p)
{
    static const char name[] = "libBrokenLocale.so.1";
    struct link_map *map = NULL;
    void *library = p->source->tested || dlopen(name, RTLD_LAZY | RTLD_NOLOAD) ? NULL : dlopen(name, RTLD_LAZY);
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || *(unsigned char *)map->l_addr != ELF_MARK)
        return self_test_vouched(p, ST_MEMORY_DLCLOSE);
    bool kept = self_test_expect_as_it_is(p, (void *)map->l_addr, p->page);
    dlclose(library);
    return !kept || self_test_answered(p);
}

uint32_t st_memory_test(struct st_memory_source *source)
{
    struct probe p = {.base = {.gone = self_test_note}, .source = source, .thread = pthread_self()};
    uint32_t missed = 0;
    p.page = st_page_size();
    if (st_memory_subscribe(&p.base) != STRATA_OK)
        return (1u << ST_MEMORY_EVENTS) - 1;
    missed |= (uint32_t)!self_test_try_unmap(&p) << ST_MEMORY_MUNMAP;
    missed |= (uint32_t)!self_test_try_move(&p) << ST_MEMORY_MREMAP_MOVE;
    missed |= (uint32_t)!self_test_try_shrink(&p) << ST_MEMORY_MREMAP_SHRINK;
    missed |= (uint32_t)!self_test_try_map_over(&p) << ST_MEMORY_MAP_FIXED;
    missed |= (uint32_t)!self_test_try_advice(&p, MADV_DONTNEED) << ST_MEMORY_DONTNEED;
    missed |= (uint32_t)!self_test_try_advice(&p, MADV_FREE) << ST_MEMORY_FREE;
    missed |= (uint32_t)!self_test_try_shmdt(&p) << ST_MEMORY_SHMDT;
    missed |= (uint32_t)!self_test_try_shm_remap(&p) << ST_MEMORY_SHM_REMAP;
    missed |= (uint32_t)!self_test_try_brk(&p) << ST_MEMORY_BRK;
    missed |= (uint32_t)!self_test_try_malloc(&p) << ST_MEMORY_MALLOC;
    missed |= (uint32_t)!self_test_try_dlclose(&p) << ST_MEMORY_DLCLOSE;
    st_memory_unsubscribe(&p.base);
    return missed;
}

/* munmap, mmap and the other calls by which memory goes away, in place of the C library's: what they report to the
 * memory framework is what the test wants heard. Included by one file of a program, which defines _GNU_SOURCE. */
#ifndef TEST_SUPPORT_HEARD_CALLS_H
#define TEST_SUPPORT_HEARD_CALLS_H

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <strata/sdk/memory.h>
#include "framework/memory/monitor.h"

static struct {
    uint32_t deaf;  /* events that are not reported */
    bool late;      /* reported when it has happened */
    bool on;        /* else nothing is reported */
    size_t segment; /* bytes of the test's segments */
} ears;

static void report(enum st_memory_event e, bool before, const void *at, size_t n)
{
    if (ears.on && before != ears.late && !(ears.deaf & (1u << e)))
        st_memory_gone((uintptr_t)at, (uintptr_t)at + n);
}

extern void __libc_free(void *p);

int munmap(void *at, size_t n)
{
    report(ST_MEMORY_MUNMAP, true, at, n);
    int rc = (int)syscall(SYS_munmap, at, n);
    report(ST_MEMORY_MUNMAP, false, at, n);
    return rc;
}

void *mremap(void *at, size_t n, size_t m, int flags, ...)
{
    enum st_memory_event e = m < n ? ST_MEMORY_MREMAP_SHRINK : ST_MEMORY_MREMAP_MOVE;
    size_t keep = m < n ? m : 0;
    va_list args;
    va_start(args, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    report(e, true, (char *)at + keep, n - keep);
    long rc = syscall(SYS_mremap, at, n, m, flags, to);
    report(e, false, (char *)at + keep, n - keep);
    return (void *)rc;
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED)
        report(ST_MEMORY_MAP_FIXED, true, at, n);
    long rc = syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    if (flags & MAP_FIXED)
        report(ST_MEMORY_MAP_FIXED, false, at, n);
    return (void *)rc;
}

int madvise(void *at, size_t n, int advice)
{
    enum st_memory_event e = advice == MADV_FREE ? ST_MEMORY_FREE : ST_MEMORY_DONTNEED;
    report(e, true, at, n);
    int rc = (int)syscall(SYS_madvise, at, n, advice);
    report(e, false, at, n);
    return rc;
}

int shmdt(const void *at)
{
    report(ST_MEMORY_SHMDT, true, at, ears.segment);
    int rc = (int)syscall(SYS_shmdt, at);
    report(ST_MEMORY_SHMDT, false, at, ears.segment);
    return rc;
}

void *shmat(int id, const void *at, int flags)
{
    if (flags & SHM_REMAP)
        report(ST_MEMORY_SHM_REMAP, true, at, ears.segment);
    long rc = syscall(SYS_shmat, id, at, flags);
    if (flags & SHM_REMAP)
        report(ST_MEMORY_SHM_REMAP, false, at, ears.segment);
    return (void *)rc;
}

/* Only of what is large. A sanitizer brings its own. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
void free(void *p)
{
    size_t n = p ? malloc_usable_size(p) : 0;
    uint32_t saved = ears.deaf;
    if (n >= 32 << 20)
        report(ST_MEMORY_MALLOC, true, p, n);
    ears.deaf = UINT32_MAX;
    __libc_free(p);
    ears.deaf = saved;
    if (n >= 32 << 20)
        report(ST_MEMORY_MALLOC, false, p, n);
}
#endif

int dlclose(void *library)
{
    int (*real)(void *);
    *(void **)&real = dlsym(RTLD_NEXT, "dlclose");
    struct link_map *map = NULL;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    void *at = (void *)map->l_addr;
    report(ST_MEMORY_DLCLOSE, true, at, 1 << 20);
    int rc = real(library);
    report(ST_MEMORY_DLCLOSE, false, at, 1 << 20);
    return rc;
}

static uintptr_t heap_end;

void *sbrk(intptr_t by)
{
    uintptr_t old = heap_end ? heap_end : (uintptr_t)syscall(SYS_brk, 0);
    if (by < 0)
        report(ST_MEMORY_BRK, true, (void *)(old + (uintptr_t)by), (uintptr_t)-by);
    heap_end = (uintptr_t)syscall(SYS_brk, old + (uintptr_t)by);
    if (by < 0)
        report(ST_MEMORY_BRK, false, (void *)(old + (uintptr_t)by), (uintptr_t)-by);
    return (void *)old;
}

#endif

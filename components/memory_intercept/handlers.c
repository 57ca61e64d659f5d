/* What each call makes go away. A handler runs before the call, which may still fail: reporting too much costs a
 * registration, and nothing else. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Whole pages: of at least this size, and of no more than the largest that any kernel has. */
enum { PAGE_MIN = 4096, PAGE_MAX = 65536 };

static void intercept_report(uintptr_t at, uintptr_t bytes)
{
    uintptr_t end = at + bytes;
    if (bytes == 0)
        return;
    if (end < at || end > UINTPTR_MAX - PAGE_MAX)
        end = UINTPTR_MAX;
    else
        end = (end + PAGE_MIN - 1) & ~(uintptr_t)(PAGE_MIN - 1);
    st_memory_gone(at & ~(uintptr_t)(PAGE_MIN - 1), end);
}

static void intercept_before_munmap(uintptr_t at, uintptr_t bytes, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
    (void)c, (void)d, (void)e, (void)f;
    intercept_report(at, bytes);
}

static void intercept_before_mmap(uintptr_t at, uintptr_t bytes, uintptr_t prot, uintptr_t flags, uintptr_t e,
                                  uintptr_t f)
{
    (void)prot, (void)e, (void)f;
    if ((flags & MAP_FIXED) && !(flags & MAP_FIXED_NOREPLACE))
        intercept_report(at, bytes);
}

static void intercept_before_mremap(uintptr_t at, uintptr_t was, uintptr_t will_be, uintptr_t flags, uintptr_t to,
                                    uintptr_t f)
{
    (void)f;
    if (flags & MREMAP_FIXED)
        intercept_report(to, will_be);
    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) || ((flags & MREMAP_MAYMOVE) && will_be > was))
        intercept_report(at, was);
    else if (will_be < was)
        intercept_report(at + will_be, was - will_be);
}

static void intercept_before_madvise(uintptr_t at, uintptr_t bytes, uintptr_t advice, uintptr_t d, uintptr_t e,
                                     uintptr_t f)
{
    (void)d, (void)e, (void)f;
    switch ((int)advice) {
    case MADV_DONTNEED:
    case MADV_DONTNEED_LOCKED:
    case MADV_FREE:
    case MADV_REMOVE:
        intercept_report(at, bytes);
        break;
    default:
        break;
    }
}

/* The heap's end as the kernel knows it. Not by sbrk, whose variable another thread may be changing. */
static uintptr_t intercept_heap_end(void)
{
    int saved = errno;
    uintptr_t end = (uintptr_t)syscall(SYS_brk, 0);
    errno = saved;
    return end;
}

static void intercept_before_brk(uintptr_t end, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
    (void)b, (void)c, (void)d, (void)e, (void)f;
    uintptr_t now;
    if (end == 0 || (now = intercept_heap_end()) <= end)
        return;
    /* The page that holds the new end stays. */
    uintptr_t from = (end + PAGE_MIN - 1) & ~(uintptr_t)(PAGE_MIN - 1);
    if (from < now)
        intercept_report(from, now - from);
}

static void intercept_before_sbrk(uintptr_t by, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
    if ((intptr_t)by < 0)
        intercept_before_brk(intercept_heap_end() + by, b, c, d, e, f);
}

static void intercept_before_shmat(uintptr_t id, uintptr_t at, uintptr_t flags, uintptr_t d, uintptr_t e, uintptr_t f)
{
    (void)d, (void)e, (void)f;
    struct shmid_ds about;
    int saved = errno;
    uintptr_t from = flags & SHM_RND ? at & ~(uintptr_t)(PAGE_MAX - 1) : at;
    if ((flags & SHM_REMAP) && at && shmctl((int)id, IPC_STAT, &about) == 0)
        intercept_report(from, at - from + about.shm_segsz);
    errno = saved;
}

static void intercept_before_shmdt(uintptr_t at, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
    (void)b, (void)c, (void)d, (void)e, (void)f;
    intercept_report_segment(at);
}

/* remap_file_pages, which puts other pages of a file where some were. */
static void intercept_before_remap_pages(uintptr_t at, uintptr_t bytes, uintptr_t c, uintptr_t d, uintptr_t e,
                                         uintptr_t f)
{
    (void)c, (void)d, (void)e, (void)f;
    intercept_report(at, bytes);
}

/* syscall(): also how other libraries that change this code do the calls themselves, whichever of us came first. */
static void intercept_before_syscall(uintptr_t number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
{
    switch ((long)number) {
    case SYS_munmap:
        intercept_before_munmap(a, b, c, d, e, 0);
        break;
    case SYS_mmap:
        intercept_before_mmap(a, b, c, d, e, 0);
        break;
    case SYS_mremap:
        intercept_before_mremap(a, b, c, d, e, 0);
        break;
    case SYS_madvise:
        intercept_before_madvise(a, b, c, d, e, 0);
        break;
    case SYS_brk:
        intercept_before_brk(a, b, c, d, e, 0);
        break;
    case SYS_shmat:
        intercept_before_shmat(a, b, c, d, e, 0);
        break;
    case SYS_shmdt:
        intercept_before_shmdt(a, b, c, d, e, 0);
        break;
    case SYS_remap_file_pages:
        intercept_before_remap_pages(a, b, c, d, e, 0);
        break;
    default:
        break;
    }
}

/* Process-wide, as the code is. munmap comes first: its first word is the pulse. */
struct intercept_entry intercept_entries[] = {
    {.name = "munmap", .fn = intercept_before_munmap, .event = ST_MEMORY_MUNMAP},
    {.name = "mmap", .fn = intercept_before_mmap, .event = ST_MEMORY_MAP_FIXED},
    {.name = "mmap64", .fn = intercept_before_mmap, .event = ST_MEMORY_MAP_FIXED, .optional = true},
    {.name = "mremap", .fn = intercept_before_mremap, .event = ST_MEMORY_MREMAP_MOVE},
    {.name = "madvise", .fn = intercept_before_madvise, .event = ST_MEMORY_DONTNEED},
    {.name = "brk", .fn = intercept_before_brk, .event = ST_MEMORY_BRK},
    /* It uses brk, but other libraries' do not. */
    {.name = "sbrk", .fn = intercept_before_sbrk, .event = ST_MEMORY_BRK, .optional = true},
    {.name = "shmat", .fn = intercept_before_shmat, .event = ST_MEMORY_SHM_REMAP},
    {.name = "shmdt", .fn = intercept_before_shmdt, .event = ST_MEMORY_SHMDT},
    {.name = "remap_file_pages", .fn = intercept_before_remap_pages, .event = ST_MEMORY_MAP_FIXED, .optional = true},
    {.name = "syscall", .fn = intercept_before_syscall, .event = ST_MEMORY_EVENTS},
    {.name = "the loader's munmap", .fn = intercept_before_munmap, .event = ST_MEMORY_DLCLOSE, .optional = true},
};
const size_t intercept_n_entries = sizeof(intercept_entries) / sizeof(intercept_entries[0]);

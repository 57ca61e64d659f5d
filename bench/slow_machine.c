/* For LD_PRELOAD: a machine on which copies, the kernel's copies between processes, or wake-ups take longer, so that
 * choices that rest on their ratios can be tried where they differ. SLOW_MACHINE=copy=4,vm=2,wake=3 makes each take so
 * many times as long (1 to 100); vm=never refuses the kernel's copies, as kernels and containers may. page=64k is what
 * processes are told of the size of pages, by which they lay out memory to share; page=huge asks for huge pages behind
 * shared memory, which the kernel gives where /sys/kernel/mm/transparent_hugepage/shmem_enabled allows it. A wrong word
 * ends the process with status 2. The time that an operation took is spent again, so factors hold at every length;
 * below COPY_LEAST bytes the clock would be most of it. Copies by an instruction in place are out of reach:
 * btl_sm_movs_min=0 has btl_sm call memcpy. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SHOWN      __attribute__((visibility("default")))
#define COPY_LEAST 512u

static struct {
    double copy, vm, wake;
    int vm_never, huge;
    long page; /* 0: as it is */
    ssize_t (*readv)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long, unsigned long);
    ssize_t (*writev)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long, unsigned long);
    long (*syscall)(long, ...);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    long (*sysconf)(int);
} slow;

static void *slow_next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* Sets *factor where the word is NAME= with a factor of 1 to 100. */
static int slow_takes(const char *word, const char *name, double *factor)
{
    size_t n = strlen(name);
    char *end;
    double given;

    if (strncmp(word, name, n) != 0)
        return 0;
    given = strtod(word + n, &end);
    if (end == word + n || *end != '\0' || !(given >= 1 && given <= 100))
        return 0;
    *factor = given;
    return 1;
}

__attribute__((constructor)) static void slow_begin(void)
{
    const char *text = getenv("SLOW_MACHINE");
    char word[32];
    int used = 0;

    slow.copy = slow.vm = slow.wake = 1;
    *(void **)&slow.readv = slow_next("process_vm_readv");
    *(void **)&slow.writev = slow_next("process_vm_writev");
    *(void **)&slow.syscall = slow_next("syscall");
    *(void **)&slow.mmap = slow_next("mmap");
    *(void **)&slow.sysconf = slow_next("sysconf");
    for (; text && *text; text += used, text += *text == ',') {
        if (sscanf(text, "%31[^,]%n", word, &used) != 1)
            break;
        if (strcmp(word, "vm=never") == 0) {
            slow.vm_never = 1;
        } else if (strcmp(word, "page=huge") == 0) {
            slow.huge = 1;
        } else if (strcmp(word, "page=64k") == 0) {
            slow.page = 65536;
        } else if (!slow_takes(word, "copy=", &slow.copy) && !slow_takes(word, "vm=", &slow.vm) &&
                   !slow_takes(word, "wake=", &slow.wake)) {
            fprintf(stderr,
                    "slow_machine: SLOW_MACHINE: \"%s\" is not copy=, vm= or wake= with a factor of 1 to 100, nor "
                    "vm=never, page=64k or page=huge\n",
                    word);
            _exit(2);
        }
    }
}

static double slow_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Spends what began at `begin` again, so that all takes `factor` times as long. */
static void slow_spend(double begin, double factor)
{
    int kept = errno;
    double now = slow_now(), end = now + (now - begin) * (factor - 1);

    while (now < end)
        now = slow_now();
    errno = kept;
}

SHOWN void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
    double begin;

    if (n < COPY_LEAST || slow.copy <= 1)
        return memmove(dst, src, n);
    begin = slow_now();
    memmove(dst, src, n);
    slow_spend(begin, slow.copy);
    return dst;
}

static ssize_t slow_between(ssize_t (*copy)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                                            unsigned long, unsigned long),
                            pid_t pid, const struct iovec *mine, unsigned long n_mine, const struct iovec *other,
                            unsigned long n_other, unsigned long flags)
{
    double begin = slow_now();
    ssize_t n;

    if (slow.vm_never) {
        errno = EPERM;
        return -1;
    }
    n = copy(pid, mine, n_mine, other, n_other, flags);
    slow_spend(begin, slow.vm);
    return n;
}

SHOWN ssize_t process_vm_readv(pid_t pid, const struct iovec *mine, unsigned long n_mine, const struct iovec *other,
                               unsigned long n_other, unsigned long flags)
{
    return slow_between(slow.readv, pid, mine, n_mine, other, n_other, flags);
}

SHOWN ssize_t process_vm_writev(pid_t pid, const struct iovec *mine, unsigned long n_mine, const struct iovec *other,
                                unsigned long n_other, unsigned long flags)
{
    return slow_between(slow.writev, pid, mine, n_mine, other, n_other, flags);
}

SHOWN long syscall(long number, ...)
{
    double begin = slow_now();
    long a[6], result;
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    result = slow.syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_futex && ((int)a[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
        slow_spend(begin, slow.wake);
    return result;
}

SHOWN long sysconf(int name)
{
    if (name == _SC_PAGESIZE && slow.page)
        return slow.page;
    if (!slow.sysconf) /* the loader's libraries begin before this one */
        *(void **)&slow.sysconf = slow_next("sysconf");
    return slow.sysconf(name);
}

SHOWN int getpagesize(void)
{
    return (int)sysconf(_SC_PAGESIZE);
}

SHOWN void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    void *memory;

    if (!slow.mmap) /* the loader's libraries begin before this one */
        *(void **)&slow.mmap = slow_next("mmap");
    memory = slow.mmap(at, length, protection, flags, fd, offset);
    if (slow.huge && memory != MAP_FAILED && (flags & MAP_SHARED) && fd >= 0)
        (void)madvise(memory, length, MADV_HUGEPAGE);
    return memory;
}

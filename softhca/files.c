/* Files. UCX looks for /dev/infiniband/<dev_name> before it asks libibverbs, Open MPI wants /sys/class/infiniband to be
 * a folder: stat and access answer for what our devices would have there. librdmacm opens /dev/infiniband/rdma_cm,
 * wants it to be a character device, and writes commands to it, which cm_command.c carries out. Everything else goes to
 * the C library. */
#define _GNU_SOURCE 1
#include "cm.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char devices[] = "/dev/infiniband/", manager[] = "rdma_cm", classes[] = "/sys/class/infiniband";

/* The next function of this name; NULL and ENOSYS: there is none, which cannot be. */
#define NEXT(name)                                                                                                     \
    ({                                                                                                                 \
        static _Atomic(void *) found_;                                                                                 \
        (__typeof__(&(name)))next(&found_, #name);                                                                     \
    })
static void *next(_Atomic(void *) *found, const char *name)
{
    void *at = atomic_load_explicit(found, memory_order_acquire);
    if (!at) {
        at = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(found, at, memory_order_release);
    }
    if (!at)
        errno = ENOSYS;
    return at;
}

static bool is_manager(const char *path)
{
    struct hca_device *d;
    if (strncmp(path, devices, sizeof devices - 1) != 0 || strcmp(path + sizeof devices - 1, manager) != 0)
        return false;
    hca_devices(&d);
    return !hca.limits.no_manager;
}

/* What stands in for a file of ours; NULL: it is none. */
static const char *stand_in(const char *path)
{
    struct hca_device *d;
    size_t n;

    if (!path || (path[1] != 'd' && path[1] != 's'))
        return NULL;
    if (strcmp(path, classes) == 0)
        return "/sys/class";
    if (is_manager(path))
        return "/dev/null";
    if (strncmp(path, devices, sizeof devices - 1) != 0)
        return NULL;
    n = hca_devices(&d);
    for (size_t i = 0; i < n; i++)
        if (strcmp(path + sizeof devices - 1, d[i].ibv.dev_name) == 0)
            return "/dev/null";
    return NULL;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    __typeof__(&stat) real = NEXT(stat);
    const char *other = stand_in(path);
    return real ? real(other ? other : path, st) : -1;
}

EXPORT int access(const char *path, int mode)
{
    __typeof__(&access) real = NEXT(access);
    const char *other = stand_in(path);
    return real ? real(other ? other : path, mode) : -1;
}

/* A kernel that has a manager knows the devices that it is for, and ours are none of those: it goes first. */
EXPORT int open(const char *path, int flags, ...)
{
    __typeof__(&open) real = NEXT(open);
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    if (!real)
        return -1;
    const int fd = real(path, flags, mode);
    return fd < 0 && errno != EFAULT && is_manager(path) ? cm_open(flags) : fd;
}

EXPORT int fstat(int fd, struct stat *st)
{
    __typeof__(&fstat) real = NEXT(fstat);
    const int rc = real ? real(fd, st) : -1;
    if (rc == 0 && cm_has(fd))
        st->st_mode = S_IFCHR | 0666;
    return rc;
}

EXPORT ssize_t write(int fd, const void *from, size_t size)
{
    if (cm_has(fd))
        return cm_write(fd, from, size);
    __typeof__(&write) real = NEXT(write);
    return real ? real(fd, from, size) : -1;
}

EXPORT int close(int fd)
{
    if (cm_has(fd))
        cm_close(fd);
    __typeof__(&close) real = NEXT(close);
    return real ? real(fd) : -1;
}

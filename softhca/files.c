/* Files that programs look for before they ask libibverbs: UCX wants /dev/infiniband/<dev_name>, Open MPI wants
 * /sys/class/infiniband to be a folder. They ask stat and access, which answer for what our
 * devices would have there. Everything else goes to
 * the C library. */
#define _GNU_SOURCE 1
#include "hca.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char devices[] = "/dev/infiniband/", classes[] = "/sys/class/infiniband";

/* What stands in for a file of ours; NULL: it is none. */
static const char *stand_in(const char *path)
{
    struct hca_device *d;
    size_t n;

    if (!path || (path[1] != 'd' && path[1] != 's'))
        return NULL;
    if (strcmp(path, classes) == 0)
        return "/sys/class";
    if (strncmp(path, devices, sizeof devices - 1) != 0)
        return NULL;
    n = hca_devices(&d);
    for (size_t i = 0; i < n; i++)
        if (strcmp(path + sizeof devices - 1, d[i].ibv.dev_name) == 0)
            return "/dev/null";
    return NULL;
}

__attribute__((visibility("default"))) int stat(const char *restrict path, struct stat *restrict st)
{
    int (*real)(const char *, struct stat *);
    const char *other = stand_in(path);

    *(void **)&real = dlsym(RTLD_NEXT, "stat");
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    return real(other ? other : path, st);
}

__attribute__((visibility("default"))) int access(const char *path, int mode)
{
    int (*real)(const char *, int);
    const char *other = stand_in(path);

    *(void **)&real = dlsym(RTLD_NEXT, "access");
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    return real(other ? other : path, mode);
}

/* A folder is alive while its maker, or the maker's guard, holds a lock on it. A lock, and not a process id in the
 * name, because containers with process ids of their own share /tmp. */
#define _GNU_SOURCE
#include "tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "report.h"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    (void)remove(path);
    return 0;
}

/* Without FTW_MOUNT: on an overlay file system files may be of another device than the folder that they are in. */
static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void sweep(const char *base, const char *prefix)
{
    DIR *d = opendir(base);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        int fd = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            char path[4096];
            if (snprintf(path, sizeof(path), "%s/%s", base, e->d_name) < (int)sizeof(path))
                remove_tree(path);
        }
        close(fd);
    }
    closedir(d);
}

/* Some file systems, of several machines, know no locks of folders: nobody sweeps there. */
static bool lock_folder(int fd)
{
    return fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
}

/* Another strata-run may sweep between mkdtemp and flock: then the folder is gone and we make another. */
static int make(struct tmpdir *out, const char *base, const char *prefix)
{
    for (int attempt = 0; attempt < 16; attempt++) {
        struct stat ours, named;
        if (snprintf(out->path, sizeof(out->path), "%s/%sXXXXXX", base, prefix) >= (int)sizeof(out->path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (!mkdtemp(out->path))
            return -1;
        out->lock = open(out->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (lock_folder(out->lock) && fstat(out->lock, &ours) == 0 && stat(out->path, &named) == 0 &&
            ours.st_ino == named.st_ino)
            return 0;
        int error = errno;
        if (out->lock >= 0)
            close(out->lock);
        (void)rmdir(out->path);
        errno = error;
    }
    return -1;
}

int tmpdir_create(struct tmpdir *out)
{
    const char *base = getenv("TMPDIR");
    char prefix[64];
    if (!base || *base != '/')
        base = "/tmp";
    snprintf(prefix, sizeof(prefix), "strata-run.%ld.", (long)geteuid());
    sweep(base, prefix);
    if (make(out, base, prefix) != 0) {
        report_error("cannot make a folder in %s: %s", base, strerror(errno));
        return -1;
    }
    return 0;
}

void tmpdir_remove(struct tmpdir *dir)
{
    remove_tree(dir->path);
    close(dir->lock);
}

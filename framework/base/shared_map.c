/* Parts of other processes' shared files, mapped here. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <strata/sdk/shared_map.h>

static int shared_map_status(int error)
{
    return error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN ? STRATA_ERR_NOMEM
                                                                                    : STRATA_ERR_UNSUPPORTED;
}

/* Whether it is the file that the name says, of ordinary pages, and never shorter than the part. */
static bool shared_map_may(int fd, const struct st_shared_name *name)
{
    struct stat st;
    struct statfs fs;
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           (uint32_t)st.st_ino == name->inode && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
           name->length <= (uint64_t)st.st_size && name->offset <= (uint64_t)st.st_size - name->length;
}

/* A descriptor of the file; a negative status. Opening anything but a memfd could block, or do something: the target's
 * name is asked first. */
static int shared_map_open(uint32_t pid, const struct st_shared_name *name)
{
    static const char memfd[] = "/memfd:";
    char path[64], target[sizeof(memfd)] = "";

    snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, (int)name->fd);
    if (readlink(path, target, sizeof(target) - 1) < 0 || strcmp(target, memfd) != 0)
        return STRATA_ERR_UNSUPPORTED;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return shared_map_status(errno);
    if (shared_map_may(fd, name))
        return fd;
    close(fd);
    return STRATA_ERR_UNSUPPORTED;
}

int st_shared_name_make(int fd, uint64_t offset, uint64_t length, struct st_shared_name *name)
{
    struct stat st;

    if (length == 0 || length > ST_SHARED_MAP_MOST || fstat(fd, &st) != 0)
        return STRATA_ERR_ARG;
    *name = (struct st_shared_name){.offset = offset, .length = length, .inode = (uint32_t)st.st_ino, .fd = fd};
    return STRATA_OK;
}

int st_shared_map(uint32_t pid, const struct st_shared_name *name, struct st_shared_mapping *out)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = name->offset & (page - 1);

    if (name->length == 0 || name->length > ST_SHARED_MAP_MOST)
        return STRATA_ERR_UNSUPPORTED;
    int fd = shared_map_open(pid, name);
    if (fd < 0)
        return fd;
    const size_t bytes = (size_t)((before + name->length + page - 1) & ~(page - 1));
    void *start =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)(name->offset - before));
    int error = errno;
    close(fd);
    if (start == MAP_FAILED)
        return shared_map_status(error);
    (void)madvise(start, bytes, MADV_DONTFORK);
    *out = (struct st_shared_mapping){.memory = (char *)start + before, .start = start, .bytes = bytes};
    return STRATA_OK;
}

void st_shared_unmap(struct st_shared_mapping *mapping)
{
    if (mapping->memory)
        munmap(mapping->start, mapping->bytes);
    *mapping = (struct st_shared_mapping){0};
}

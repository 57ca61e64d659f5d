/* The memfd that a memory region lies in. Peers map it, so that a short RDMA write is a few stores (store.c). It has to
 * be MAP_SHARED, since pages of a MAP_PRIVATE mapping are copies, and sealed against shrinking, since a store beyond
 * the end of a file is a signal. The program's own descriptor is looked for once, and a duplicate is kept for peers to
 * find: the program may close its own. */
#define _GNU_SOURCE 1
#include "hca.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Whether the page is of a file or shared: asked first, since most memory is not, and the list of mappings is long. Bit
 * 61 of an entry of /proc/PID/pagemap. */
static bool is_of_a_file(const void *addr)
{
    uint64_t entry, page = (uintptr_t)addr / hca_page_size();

    return pread(hca.pagemap_fd, &entry, sizeof entry, (off_t)(page * sizeof entry)) == sizeof entry &&
           (entry >> 61 & 1);
}

/* Takes one line of /proc/self/maps, of which *next is the first address that is still to be found. False: it is not in
 * a mapping that peers could share, or not of the same file, or in another order. */
static bool take_line(const char *line, uint64_t first, uint64_t *next, struct hca_backing *b)
{
    unsigned long long from, to, offset, inode;
    unsigned int major_number, minor_number;
    char rights[8];

    if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu", &from, &to, rights, &offset, &major_number, &minor_number,
               &inode) != 7)
        return false;
    if (to <= *next)
        return true;
    if (from > *next || strncmp(rights + 1, "w", 1) != 0 || rights[3] != 's')
        return false;
    const uint64_t device = makedev(major_number, minor_number), at = offset + (*next - from);
    if (*next == first)
        *b = (struct hca_backing){.device = device, .inode = inode, .offset = at};
    if (b->device != device || b->inode != inode || at != b->offset + (*next - first))
        return false;
    *next = to;
    return true;
}

bool hca_backing_find(const void *addr, size_t length, struct hca_backing *b)
{
    const uint64_t first = (uintptr_t)addr;
    uint64_t next = first;
    char *line = NULL;
    size_t room = 0;
    FILE *maps;

    if (length == 0 || !is_of_a_file(addr) || !(maps = fopen("/proc/self/maps", "re")))
        return false;
    while (next < first + length && getline(&line, &room, maps) > 0 && take_line(line, first, &next, b))
        ;
    free(line);
    fclose(maps);
    b->end = b->offset + length;
    return next >= first + length;
}

static bool is_it(const struct stat *st, const struct hca_backing *b)
{
    return st->st_dev == b->device && st->st_ino == b->inode;
}

/* A duplicate of a descriptor of the file, if peers may map it; -1: they may not, or the number is another file's. */
static int duplicate(int theirs, const struct hca_backing *b)
{
    const int fd = fcntl(theirs, F_DUPFD_CLOEXEC, 0);
    struct stat st;
    int seals;

    if (fd < 0 ||
        (fstat(fd, &st) == 0 && is_it(&st, b) && (seals = fcntl(fd, F_GET_SEALS)) >= 0 && (seals & F_SEAL_SHRINK)))
        return fd;
    close(fd);
    return -1;
}

/* A duplicate of the program's descriptor; -1: it has none. Other threads open and close theirs meanwhile: each is
 * looked at by its path. */
static int find_descriptor(const struct hca_backing *b)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    struct stat st;
    int found = -1;

    while (d && found < 0 && (e = readdir(d)) != NULL)
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && is_it(&st, b))
            found = duplicate(atoi(e->d_name), b);
    if (d)
        closedir(d);
    return found;
}

/* Publishes a file to peers, or its new length. */
static void announce(uint32_t slot, const struct hca_backing *b)
{
    struct hca_file *f = hca_file_at(hca.segment, slot);
    struct stat st = {.st_size = 0};

    atomic_store(&f->serial, 0);
    (void)fstat(hca.file[slot].fd, &st);
    f->device = b->device;
    f->inode = b->inode;
    f->bytes = (uint64_t)st.st_size;
    f->fd = hca.file[slot].fd;
    /* Release: the serial makes the rest valid. */
    atomic_store_explicit(&f->serial, ++hca.file_serial, memory_order_release);
}

uint32_t hca_file_hold(const struct hca_backing *b)
{
    uint32_t slot = HCA_FILES;

    for (uint32_t i = 0; i < HCA_FILES; i++) {
        const struct hca_file *f = hca_file_at(hca.segment, i);
        if (hca.file[i].regions > 0 && f->device == b->device && f->inode == b->inode) {
            if (b->end > f->bytes)
                announce(i, b);
            hca.file[i].regions++;
            return i + 1;
        }
        if (hca.file[i].regions == 0 && slot == HCA_FILES)
            slot = i;
    }
    if (slot == HCA_FILES || (hca.file[slot].fd = find_descriptor(b)) < 0)
        return 0;
    hca.file[slot].regions = 1;
    announce(slot, b);
    return slot + 1;
}

void hca_file_let_go(uint32_t number)
{
    struct hca_peer *self = atomic_load(&hca.peer[hca.index]);

    if (number == 0 || --hca.file[number - 1].regions > 0)
        return;
    atomic_store(&hca_file_at(hca.segment, number - 1)->serial, 0);
    close(hca.file[number - 1].fd);
    if (self)
        hca_mapped_trim(self);
}

void hca_files_in_child(void)
{
    for (uint32_t i = 0; i < HCA_FILES; i++) {
        if (hca.file[i].regions > 0)
            close(hca.file[i].fd);
        hca.file[i].regions = 0;
    }
}

/* Finding a segment as a peer does, and changing words of it: mostly what the library uses, and mostly to values that
 * are nearly right. */
#include "fuzz.h"
#include "softhca/segment.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A memfd of the process whose name begins so. */
static int memory_of(pid_t pid, const char *name)
{
    char folder[64], path[400], target[64];
    struct dirent *e;
    int fd = -1;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)pid);
    d = opendir(folder);
    while (d && fd < 0 && (e = readdir(d)) != NULL) {
        ssize_t n;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        n = readlink(path, target, sizeof target - 1);
        if (n > 0 && (target[n] = 0, strncmp(target, name, strlen(name))) == 0)
            fd = open(path, O_RDWR | O_CLOEXEC);
    }
    if (d)
        closedir(d);
    return fd;
}

/* Our own, as the library has it: the table of memory regions nobody else can write, and we not by another mapping. */
static char *own_segment(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    unsigned long long at = 0;
    char line[400];

    char *found = NULL;

    while (f && !found && fgets(line, sizeof line, f))
        if (strstr(line, "/memfd:softhca ") && sscanf(line, "%llx-%*x rw-s 00000000 ", &at) == 1 &&
            ((const struct hca_header *)(uintptr_t)at)->pid == getpid())
            found = (char *)(uintptr_t)at;
    if (f)
        fclose(f);
    return found;
}

char *segment_of(pid_t pid)
{
    int fd = memory_of(pid, "/memfd:softhca "), keys = memory_of(pid, "/memfd:softhca-keys-");
    char *at = pid == getpid() ? own_segment() : MAP_FAILED;
    void *probe = keys >= 0 && at == MAP_FAILED ? mmap(NULL, HCA_KEYS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, keys, 0)
                                                : MAP_FAILED;

    if (fd >= 0 && at == MAP_FAILED)
        at = mmap(NULL, HCA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    /* Refused, if the kernel knows the seal; else we see what comes of it. */
    if (at != MAP_FAILED && probe != MAP_FAILED)
        (void)mmap(at + HCA_AT_MR, HCA_KEYS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, keys, 0);
    if (fd >= 0)
        close(fd);
    if (keys >= 0)
        close(keys);
    return at == MAP_FAILED ? NULL : at;
}

uint32_t segment_index(const char *segment)
{
    return ((const struct hca_header *)(const void *)segment)->process;
}

static uint64_t value(char *segment, uint64_t was, uint32_t friend, struct rng *r)
{
    switch (rng_below(r, 14)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return was + 1;
    case 3:
        return was - 1;
    case 4:
        return was ^ UINT64_C(1) << rng_below(r, 64);
    case 5:
        return rng_next(r);
    case 6:
        return UINT64_C(1) << rng_below(r, 64);
    case 7:
        return rng_below(r, 8); /* states, kinds, counts */
    case 8:
        return HCA_SIZE - rng_below(r, 4096) * 8;
    case 9:
        return HCA_AT_HEAP + rng_below(r, 1u << 16) * 64;
    case 10: /* an entry of a completion queue, in each state and of each process */
        return (uint64_t)rng_below(r, 512) << 16 | (uint64_t)(rng_below(r, 2) ? friend : segment_index(segment)) << 2 |
               rng_below(r, 4);
    case 11:
        return rng_below(r, 2) ? friend : segment_index(segment);
    case 12:
        return hca_qpn(friend, rng_below(r, 32));
    default: /* a descriptor */
        return (uint64_t)rng_below(r, 16) << 32 | rng_below(r, 32);
    }
}

/* A word of a queue, with another of an object of the same kind, or with a value. */
static void change(char *segment, char *at, size_t bytes, uint32_t friend, struct rng *r)
{
    size_t word = rng_below(r, (uint32_t)bytes / 4) * 4;
    uint64_t was;

    if (rng_below(r, 2) || word % 8) {
        volatile uint32_t *p = (volatile uint32_t *)(void *)(at + word);
        was = *p;
        *p = (uint32_t)value(segment, was, friend, r);
    } else {
        volatile uint64_t *p = (volatile uint64_t *)(void *)(at + word);
        was = *p;
        *p = value(segment, was, friend, r);
    }
}

/* Among the first slots are most of those in use. */
static uint32_t slot(struct rng *r)
{
    return rng_below(r, rng_below(r, 16) ? 16 : 1024);
}

/* A memory region, or the file that regions lie in. */
static void change_region(char *segment, uint32_t friend, struct rng *r)
{
    const uint32_t n = slot(r);

    if (n == 15)
        change(segment, (char *)hca_file_at(segment, 0), sizeof(struct hca_file), friend, r);
    else
        change(segment, segment + HCA_AT_MR + (size_t)n * HCA_SLOT_MR, sizeof(struct hca_mr), friend, r);
}

void scribble(char *segment, uint32_t friend, struct rng *r)
{
    struct hca_header *h = (struct hca_header *)(void *)segment;

    switch (rng_below(r, 16)) {
    case 0: /* all of the header but what says that it is one */
        change(segment, (char *)h + offsetof(struct hca_header, program), sizeof *h - 16, friend, r);
        break;
    case 1:
        h->atomic_lock[rng_below(r, HCA_ATOMIC_LOCKS)] = rng_below(r, 2) ? friend : rng_below(r, 2000);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        change(segment, (char *)hca_qp_at(segment, slot(r)), sizeof(struct hca_qp), friend, r);
        break;
    case 6:
        hca_qp_at(segment, slot(r))->state = rng_below(r, 9);
        break;
    case 7:
    case 8:
    case 9:
        change(segment, (char *)hca_cq_at(segment, slot(r)), sizeof(struct hca_cq), friend, r);
        break;
    case 10:
    case 11:
        change(segment, (char *)hca_srq_at(segment, slot(r)), sizeof(struct hca_srq), friend, r);
        break;
    case 12:
        change_region(segment, friend, r);
        break;
    case 13: /* one page of the heap, whole */
        for (int i = 0; i < 64; i++)
            change(segment, segment + HCA_AT_HEAP + (size_t)rng_below(r, 64) * 4096, 4096, friend, r);
        break;
    default:
        change(segment, segment + HCA_AT_HEAP, 1u << 18, friend, r);
        break;
    }
}

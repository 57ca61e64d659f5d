/* Reads a process's segment. By read, not by mapping it: reading what was never written takes no memory, and what
 * changes meanwhile does so outside of our copy. Nothing in there is trusted. */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "softhca/fabric.h"
#include "stat.h"

static bool read_all(int fd, void *to, size_t bytes, uint64_t at)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(fd, (char *)to + done, bytes - done, (off_t)(at + done));
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool header_of(int fd, uint32_t index, struct hca_header *h)
{
    return read_all(fd, h, sizeof *h, 0) && h->magic == HCA_MAGIC && h->process == index;
}

/* A memfd of that name and size among a process's descriptors, opened again for us. h: it has to begin with the header
 * of that index, which is read into it; NULL: it has none. */
static int open_memory(int pid, const char *name, uint64_t size, uint32_t index, struct hca_header *h)
{
    char folder[32], expected[64];
    const int length = snprintf(expected, sizeof expected, "/memfd:%s ", name);
    snprintf(folder, sizeof folder, "/proc/%d/fd", pid);
    DIR *d = opendir(folder);
    if (!d)
        return -1;
    int found = -1;
    for (struct dirent *e; found < 0 && (e = readdir(d));) {
        char target[64];
        const ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);
        if (n < length || memcmp(target, expected, (size_t)length))
            continue;
        struct stat st;
        found = openat(dirfd(d), e->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (found >= 0 && (fstat(found, &st) || (uint64_t)st.st_size != size || (h && !header_of(found, index, h)))) {
            close(found);
            found = -1;
        }
    }
    closedir(d);
    return found;
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

/* A copy of a table's first n slots; NULL: none, or no memory. */
static char *table(int fd, uint64_t at, uint32_t n, size_t slot)
{
    char *copy = n ? malloc(n * slot) : NULL;
    if (copy && !read_all(fd, copy, n * slot, at)) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

static void count_qps(int fd, uint32_t n, struct process_stat *s)
{
    char *copy = table(fd, HCA_AT_QP, n, HCA_SLOT_QP);
    for (uint32_t i = 0; copy && i < n; i++) {
        const struct hca_qp *qp = (const struct hca_qp *)(const void *)(copy + (size_t)i * HCA_SLOT_QP);
        if (!qp->generation)
            continue;
        s->qps++;
        s->qp[qp->state < QP_STATES ? qp->state : QP_STATES - 1]++;
    }
    free(copy);
}

static void count_cqs(int fd, uint32_t n, struct process_stat *s)
{
    char *copy = table(fd, HCA_AT_CQ, n, HCA_SLOT_CQ);
    for (uint32_t i = 0; copy && i < n; i++) {
        const struct hca_cq *cq = (const struct hca_cq *)(const void *)(copy + (size_t)i * HCA_SLOT_CQ);
        s->cqs += cq->generation != 0;
        s->cqs_overrun += cq->generation != 0 && cq->overrun != 0;
    }
    free(copy);
}

static void count_srqs(int fd, uint32_t n, struct process_stat *s)
{
    char *copy = table(fd, HCA_AT_SRQ, n, HCA_SLOT_SRQ);
    for (uint32_t i = 0; copy && i < n; i++)
        s->srqs += ((const struct hca_srq *)(const void *)(copy + (size_t)i * HCA_SLOT_SRQ))->generation != 0;
    free(copy);
}

static void count_mrs(int fd, uint32_t n, struct process_stat *s)
{
    char *copy = table(fd, 0, n, HCA_SLOT_MR);
    for (uint32_t i = 0; copy && i < n; i++) {
        const struct hca_mr *mr = (const struct hca_mr *)(const void *)(copy + (size_t)i * HCA_SLOT_MR);
        s->mrs += mr->key != 0;
        s->mrs_gone += mr->key != 0 && mr->gone != 0;
    }
    free(copy);
}

/* Names go to a terminal. */
static void copy_printable(char *to, const char *from, size_t room)
{
    size_t i = 0;
    for (; i + 1 < room && from[i]; i++)
        to[i] = isprint((unsigned char)from[i]) ? from[i] : '?';
    to[i] = 0;
}

static void read_costs(const struct hca_header *h, struct process_stat *s)
{
    for (int key = 0; key < HCA_COSTS; key++) {
        const uint64_t times = h->cost_times[key], ps = h->cost_ps[key];
        s->cost[key] = (struct cost_stat){.set = h->costs >> key & 1u,
                                          .times = times,
                                          .each_ps = ps,
                                          .ns = times / 1000 * ps + times % 1000 * ps / 1000};
    }
}

bool stat_read(const struct place *place, int pid, struct process_stat *s)
{
    static const uint32_t down = 1; /* IBV_PORT_DOWN */
    struct hca_header h;
    const int fd = open_memory(pid, HCA_MEMORY_NAME, HCA_SIZE, place->index, &h);
    if (fd < 0)
        return false;
    memset(s, 0, sizeof *s);
    s->place = *place;
    s->pid = pid;
    copy_printable(s->place.fabric, place->fabric, sizeof s->place.fabric);
    copy_printable(s->program, h.program, sizeof s->program);
    s->bytes_registered = h.bytes_registered;
    s->bytes_adapter = h.bytes_adapter;
    for (uint32_t d = 0; d < HCA_DEVICES; d++) {
        s->device_gone[d] = h.device_gone[d] != 0;
        for (uint32_t p = 0; p < HCA_PORTS; p++)
            s->port_down[d][p] = h.port[d][p].state == down;
    }
    read_costs(&h, s);
    count_qps(fd, at_most(h.top_qp, HCA_QPS), s);
    count_cqs(fd, at_most(h.top_cq, HCA_CQS), s);
    count_srqs(fd, at_most(h.top_srq, HCA_SRQS), s);
    char name[32];
    snprintf(name, sizeof name, HCA_KEYS_NAME, place->index);
    const int keys = open_memory(pid, name, HCA_KEYS_SIZE, place->index, NULL);
    if (keys >= 0) {
        count_mrs(keys, at_most(h.top_mr, HCA_MRS), s);
        close(keys);
    }
    close(fd);
    return true;
}

/* Memory of a process as the kernel counts it. One pass over smaps; nothing is allocated, since the reader measures
 * itself. */
#define _GNU_SOURCE 1
#include <strata/sdk/process_memory.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Lines of a file, in a buffer on the stack. A line that is longer loses its middle. */
struct lines {
    int fd;
    size_t at, n;
    char text[4096];
};

static bool lines_open(struct lines *l, int pid, const char *file)
{
    char path[64];

    if (pid > 0)
        snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    else
        snprintf(path, sizeof path, "/proc/self/%s", file);
    l->at = l->n = 0;
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    return l->fd >= 0;
}

/* The next line without its end, or NULL. Valid until the next call. */
static char *lines_next(struct lines *l)
{
    char *end;

    while (!(end = memchr(l->text + l->at, '\n', l->n - l->at))) {
        memmove(l->text, l->text + l->at, l->n - l->at);
        l->n -= l->at;
        l->at = 0;
        if (l->n == sizeof l->text)
            l->n = sizeof l->text / 2;
        ssize_t got = read(l->fd, l->text + l->n, sizeof l->text - l->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return NULL;
        l->n += (size_t)got;
    }
    char *line = l->text + l->at;
    *end = '\0';
    l->at = (size_t)(end - l->text) + 1;
    return line;
}

enum mapping { MAPS_OTHER, MAPS_STACK, MAPS_IMAGE, MAPS_SEGMENT, MAPS_DEVICE };

/* The kernel's name of anonymous memory in huge pages (MAP_HUGETLB). */
#define ANON_HUGE "/anon_hugepage"

static bool memory_begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* An arena of malloc for threads begins at a multiple of this (glibc's HEAP_MAX_SIZE), and ends in memory that nobody
 * may read; the next arena may follow. */
#define ARENA_ALIGNMENT (64u << 20)

/* "FROM-TO rwxp OFFSET DEVICE INODE   NAME". The stack of a thread has no name, and lies behind its guard, which nobody
 * may read; *guard is the end of the last such mapping. */
static enum mapping mapping_of(const char *line, uint64_t *guard)
{
    const char *permissions = strchr(line, ' '), *name = strpbrk(line, "/[");
    char *dash;
    uint64_t from = strtoull(line, &dash, 16);

    if (permissions && !name && permissions[1] == '-')
        *guard = strtoull(dash + 1, NULL, 16);
    else if ((name && strcmp(name, "[stack]") == 0) || (!name && from == *guard && from % ARENA_ALIGNMENT))
        return MAPS_STACK;
    if (!permissions || !name || *name == '[')
        return permissions && permissions[4] == 's' ? MAPS_SEGMENT : MAPS_OTHER;
    if (memory_begins(name, "/dev/infiniband/") || memory_begins(name, "/dev/uverbs") ||
        memory_begins(name, "/memfd:softhca"))
        return MAPS_DEVICE;
    if (permissions[4] == 's')
        return MAPS_SEGMENT;
    return memory_begins(name, ANON_HUGE) ? MAPS_OTHER : MAPS_IMAGE;
}

/* Whether `line` is field `name`; its value in bytes. */
static bool memory_field(const char *line, const char *name, size_t *bytes)
{
    size_t length = strlen(name);

    if (strncmp(line, name, length) != 0 || line[length] != ':')
        return false;
    *bytes = strtoull(line + length + 1, NULL, 10) * 1024;
    return true;
}

static void memory_resident(struct st_process_memory *m, enum mapping where, size_t bytes)
{
    m->resident += bytes;
    m->device += where == MAPS_DEVICE ? bytes : 0;
    m->segments += where == MAPS_SEGMENT ? bytes : 0;
}

static void memory_share(struct st_process_memory *m, enum mapping where, size_t bytes)
{
    *(where == MAPS_DEVICE ? &m->device_share : &m->proportional) += bytes;
}

static void memory_private(struct st_process_memory *m, enum mapping where, size_t bytes)
{
    if (where > MAPS_IMAGE)
        return;
    m->private_bytes += bytes;
    m->images += where == MAPS_IMAGE ? bytes : 0;
    m->stack += where == MAPS_STACK ? bytes : 0;
}

/* Reserved huge pages (hugetlbfs) are in none of the kernel's other fields. By how many processes one is mapped it does
 * not say. */
static void memory_add(struct st_process_memory *m, enum mapping where, const char *line)
{
    size_t bytes;

    if (memory_field(line, "Rss", &bytes)) {
        memory_resident(m, where, bytes);
    } else if (memory_field(line, "Pss", &bytes)) {
        memory_share(m, where, bytes);
    } else if (memory_field(line, "Private_Clean", &bytes) || memory_field(line, "Private_Dirty", &bytes)) {
        memory_private(m, where, bytes);
    } else if (memory_field(line, "Private_Hugetlb", &bytes)) {
        memory_resident(m, where, bytes);
        memory_share(m, where, bytes);
        memory_private(m, where, bytes);
    } else if (memory_field(line, "Shared_Hugetlb", &bytes)) {
        memory_resident(m, where, bytes);
        memory_share(m, where, bytes);
    }
}

/* The lines of smaps. */
static void memory_add_all(struct st_process_memory *m, struct lines *l)
{
    enum mapping where = MAPS_OTHER;
    uint64_t guard = 0;
    char *line;

    while ((line = lines_next(l)) != NULL) {
        if ((*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f'))
            where = mapping_of(line, &guard);
        else
            memory_add(m, where, line);
    }
}

int st_process_memory(int pid, struct st_process_memory *out)
{
    struct st_process_memory m = {0};
    struct lines l = {.fd = -1};
    char *line;

    if (!lines_open(&l, pid, "smaps"))
        return errno == ENOENT ? STRATA_ERR_NOT_FOUND : STRATA_ERR_UNSUPPORTED;
    memory_add_all(&m, &l);
    close(l.fd);
    /* A process that may not be looked into opens, and has no maps. */
    if (!m.resident)
        return STRATA_ERR_UNSUPPORTED;
    if (lines_open(&l, pid, "status")) {
        while ((line = lines_next(&l)) != NULL)
            (void)(memory_field(line, "VmPTE", &m.page_tables) || memory_field(line, "VmHWM", &m.resident_most));
        close(l.fd);
    }
    *out = m;
    return STRATA_OK;
}

size_t st_resident_bytes(const void *memory, size_t length)
{
    const uintptr_t page = st_page_size(), from = (uintptr_t)memory, to = from + length;
    unsigned char there[64];
    size_t sum = 0;

    if (!memory || !length)
        return 0;
    for (uintptr_t at = from / page * page; at < to;) {
        size_t n = (to - at + page - 1) / page;
        n = n < sizeof there ? n : sizeof there;
        if (mincore((void *)at, n * page, there) != 0) // NOLINT(performance-no-int-to-ptr)
            return length;
        for (size_t i = 0; i < n; i++, at += page)
            if (there[i] & 1)
                sum += (at + page < to ? at + page : to) - (at > from ? at : from);
    }
    return sum;
}

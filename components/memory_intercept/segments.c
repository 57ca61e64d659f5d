/* What shmdt unmaps: it is given an address alone, and a segment may be mapped in pieces. The kernel's own list says.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept.h"

/* A line of /proc/self/maps: from-to access offset device inode name. */
struct mapping {
    uint64_t from, to, offset, major, minor, inode;
};

/* Reads the file piece by piece: nothing may be allocated here. */
struct reader {
    long fd;
    long have, at;
    char buf[4096]; /* the kernel writes a page at a time */
};

static int intercept_next_char(struct reader *r)
{
    if (r->at == r->have) {
        r->have = syscall(SYS_read, r->fd, r->buf, sizeof(r->buf));
        r->at = 0;
        if (r->have <= 0) {
            r->have = 0;
            return -1;
        }
    }
    return (unsigned char)r->buf[r->at++];
}

/* A number up to the first character that is no digit of it; that character in *end. */
static uint64_t intercept_number(struct reader *r, unsigned base, int *end)
{
    uint64_t n = 0;
    for (;;) {
        int c = intercept_next_char(r);
        unsigned d = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
        if (d >= base) {
            *end = c;
            return n;
        }
        n = n * base + d;
    }
}

static bool intercept_next_mapping(struct reader *r, struct mapping *m)
{
    int c;
    m->from = intercept_number(r, 16, &c);
    if (c != '-')
        return false;
    m->to = intercept_number(r, 16, &c);
    while ((c = intercept_next_char(r)) != ' ' && c >= 0)
        ;
    m->offset = intercept_number(r, 16, &c);
    m->major = intercept_number(r, 16, &c);
    m->minor = intercept_number(r, 16, &c);
    m->inode = intercept_number(r, 10, &c);
    while (c != '\n' && c >= 0)
        c = intercept_next_char(r);
    return c == '\n';
}

void intercept_report_segment(uintptr_t at)
{
    struct reader r = {.fd = -1};
    struct mapping m, first = {0};
    bool found = false;
    int saved = errno;
    r.fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (r.fd < 0) {
        st_memory_gone(at, UINTPTR_MAX); /* it ends somewhere */
        goto out;
    }
    while (intercept_next_mapping(&r, &m)) {
        if (m.from < at || m.offset != m.from - at)
            continue;
        if (!found)
            first = m;
        found = true;
        if (m.inode == first.inode && m.major == first.major && m.minor == first.minor)
            st_memory_gone(m.from, m.to);
    }
    syscall(SYS_close, r.fd);
out:
    errno = saved;
}

/* Making, reserving and mapping segments. */
#define _GNU_SOURCE 1
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE          4096u
#define PAGES_AT_ONCE 64u
#define AROUND        ((uintptr_t)64 << 10)

static size_t sm_round_up(size_t v, size_t align)
{
    return (v + align - 1) / align * align;
}

static bool sm_is_pow2(uint32_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

int sm_layout_make(const struct sm_geometry *g, struct sm_layout *out)
{
    struct sm_layout l;

    if (g->n_dir == 0 || g->n_dir > (1u << 22) || !sm_is_pow2(g->queue_slots) || g->queue_slots > (1u << 20))
        return STRATA_ERR_PROTOCOL;
    if (g->n_cells == 0 || g->n_cells > (1u << 16) || g->cell_data == 0 || g->cell_data % SM_LINE ||
        g->cell_data > (1u << 24))
        return STRATA_ERR_PROTOCOL;
    if (g->n_rings > (1u << 14) || !sm_is_pow2(g->ring_slots) || g->ring_slots > (1u << 20) ||
        !sm_is_pow2(g->ring_data) || g->ring_data < PAGE || g->ring_data > SM_RING_DATA_MOST)
        return STRATA_ERR_PROTOCOL;
    l.directory = 1024;
    l.queue = sm_round_up(l.directory + sizeof(struct sm_dir_entry) * (size_t)g->n_dir, SM_SLOT_BYTES);
    l.coop = l.queue + (size_t)g->queue_slots * SM_SLOT_BYTES;
    l.base_end = sm_round_up(l.coop + (size_t)SM_COOP_SLOTS * SM_LINE, PAGE);
    l.cells = l.base_end;
    l.cell_stride = sm_round_up(sizeof(struct sm_cell) + g->cell_data, SM_LINE);
    l.rings = sm_round_up(l.cells + l.cell_stride * g->n_cells, PAGE);
    l.ring_stride = sm_round_up(SM_RING_CTL + (size_t)g->ring_slots * SM_LINE + g->ring_data, PAGE);
    l.total = l.rings + l.ring_stride * g->n_rings;
    if (l.total > SM_MAX_SEGMENT)
        return STRATA_ERR_PROTOCOL;
    *out = l;
    return STRATA_OK;
}

/* Zeros from `at` on, up to `end`. By writing, and not by fallocate: what that reserves is cleared at the first use of
 * each page, and the kernel enters only pages that are clear together with their neighbours. */
static int segment_write(int fd, size_t at, size_t end)
{
    static const uint8_t zeros[PAGE];
    struct iovec pages[PAGES_AT_ONCE];

    for (size_t i = 0; i < PAGES_AT_ONCE; i++)
        pages[i] = (struct iovec){(void *)(uintptr_t)zeros, PAGE};
    while (at < end) {
        size_t n = (end - at) / PAGE; /* at least 1: what is written ends with a page, or an error follows */
        ssize_t written = pwritev(fd, pages, (int)(n < PAGES_AT_ONCE ? n : PAGES_AT_ONCE), (off_t)at);
        if (written < (ssize_t)PAGE) {
            if (written < 0 && errno == EINTR)
                continue;
            if (written >= 0)
                errno = ENOSPC;
            return STRATA_ERR_NOMEM;
        }
        at += (size_t)written / PAGE * PAGE;
    }
    return STRATA_OK;
}

/* Without a write: where a limit on file sizes was lowered below the segment, that would end in a signal. */
static int segment_allocate(int fd, size_t at, size_t end)
{
    while (fallocate(fd, 0, (off_t)at, (off_t)(end - at)) != 0) {
        if (errno != EINTR)
            return STRATA_ERR_NOMEM;
    }
    return STRATA_OK;
}

int sm_segment_reserve(struct sm_segment *seg, size_t offset, size_t length)
{
    size_t first = sm_round_up(offset, PAGE); /* a page that begins before was reserved with what lies there */
    size_t end = sm_round_up(offset + length, PAGE);
    struct rlimit file_size;
    int rc, saved;

    if (seg->limit && seg->reserved + (end - first) > seg->limit) {
        errno = EFBIG;
        return STRATA_ERR_NOMEM;
    }
    if (first >= end)
        return STRATA_OK;
    if (getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur >= end)
        rc = segment_write(seg->fd, first, end);
    else
        rc = segment_allocate(seg->fd, first, end);
    if (rc != STRATA_OK) { /* nothing of it stays */
        saved = errno;
        (void)fallocate(seg->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first, (off_t)(end - first));
        errno = saved;
        return rc;
    }
    seg->reserved += end - first;
    return STRATA_OK;
}

void sm_segment_enter(const uint8_t *from, size_t length)
{
    uintptr_t at = (uintptr_t)from, end = at + length;

    /* By reading: around a read fault, and not around a write fault, the kernel enters what there is of the same 64 KiB
     * (do_fault_around in its mm/memory.c). Entries of shared memory may be written at once. */
    for (; at < end; at = (at | (AROUND - 1)) + 1)
        (void)__atomic_load_n((const uint8_t *)at, __ATOMIC_RELAXED);
}

int sm_segment_create(const struct sm_geometry *g, size_t limit, struct sm_segment *out)
{
    struct sm_segment seg = {.fd = -1, .geometry = *g, .limit = limit, .owner = true};
    struct sm_header *h;
    struct rlimit file_size;
    void *p;
    int saved;

    if (sm_layout_make(g, &seg.at) != STRATA_OK) {
        errno = EINVAL;
        return STRATA_ERR_ARG;
    }
    /* A limit on file sizes holds for memfds too, and answers with a signal: ask before. */
    if (getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur < seg.at.total) {
        errno = EFBIG;
        return STRATA_ERR_NOMEM;
    }
    seg.fd = memfd_create("strata-sm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (seg.fd < 0)
        return STRATA_ERR_SYSTEM;
    if (ftruncate(seg.fd, (off_t)seg.at.total) != 0 ||
        fcntl(seg.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        goto fail;
    if (sm_segment_reserve(&seg, 0, seg.at.base_end) != STRATA_OK)
        goto fail;
    p = mmap(NULL, seg.at.total, PROT_READ | PROT_WRITE, MAP_SHARED, seg.fd, 0);
    if (p == MAP_FAILED)
        goto fail;
    seg.base = p;
    sm_segment_enter(seg.base, seg.at.base_end);
    h = sm_header(seg.base);
    h->magic = SM_MAGIC;
    h->version = SM_VERSION;
    h->geometry = *g;
    *out = seg;
    return STRATA_OK;
fail:
    saved = errno;
    close(seg.fd);
    errno = saved;
    return errno == ENOSPC || errno == ENOMEM || errno == EFBIG ? STRATA_ERR_NOMEM : STRATA_ERR_SYSTEM;
}

int sm_segment_map(int fd, struct sm_segment *out)
{
    struct sm_segment seg = {.fd = -1, .owner = false};
    struct stat st;
    struct sm_header head;
    void *p;
    int seals = fcntl(fd, F_GET_SEALS);

    /* A file that could be made shorter under us would turn an access into SIGBUS. */
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) != 0)
        return STRATA_ERR_PROTOCOL;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.magic != SM_MAGIC ||
        head.version != SM_VERSION)
        return STRATA_ERR_PROTOCOL;
    seg.geometry = head.geometry;
    if (sm_layout_make(&seg.geometry, &seg.at) != STRATA_OK || (size_t)st.st_size != seg.at.total)
        return STRATA_ERR_PROTOCOL;
    p = mmap(NULL, seg.at.total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return STRATA_ERR_NOMEM;
    seg.base = p;
    *out = seg;
    return STRATA_OK;
}

void sm_segment_destroy(struct sm_segment *seg)
{
    if (seg->base)
        munmap(seg->base, seg->at.total);
    if (seg->fd >= 0)
        close(seg->fd);
    seg->base = NULL;
    seg->fd = -1;
}

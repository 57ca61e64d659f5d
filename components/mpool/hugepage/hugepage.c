/* Large pages: reserved ones (MAP_HUGETLB), else transparent ones, else the system's. */
#define _GNU_SOURCE
#include "hugepage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

static struct huge *huge_of(struct st_mpool *pool)
{
    return (struct huge *)(void *)pool;
}

static void *huge_map(size_t bytes, int flags)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* Anonymous memory that begins on a boundary of a large page. */
static void *huge_map_aligned(size_t bytes, size_t align)
{
    char *p = huge_map(bytes + align, 0);

    if (!p)
        return NULL;
    size_t before = -(uintptr_t)p & (align - 1), after = align - before;
    if (before)
        munmap(p, before);
    munmap(p + before + bytes, after);
    return p + before;
}

/* Reserved pages are taken whole when the mapping is made: where they run out it fails, and nobody is killed later. */
static void *huge_map_large(struct huge *h, size_t bytes)
{
    void *p = huge_map(bytes, MAP_HUGETLB | (__builtin_ctzl(h->large) << MAP_HUGE_SHIFT));

    if (p)
        return p;
    if (!h->said)
        st_log(h->base.context, ST_LOG_INFO, "mpool",
               "no reserved pages of %zu KiB are left (vm.nr_hugepages): transparent ones are used", h->large / 1024);
    h->said = true;
    p = huge_map_aligned(bytes, h->large);
    if (p)
        (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static void *huge_alloc(struct st_mpool *pool, size_t len, size_t *got)
{
    struct huge *h = huge_of(pool);
    /* What a large page would mostly waste gets small ones. */
    bool large = h->large && len >= h->large;
    size_t page = large ? h->large : pool->page, bytes = (len + page - 1) & ~(page - 1);
    void *p;

    if (bytes < len)
        return NULL;
    p = large ? huge_map_large(h, bytes) : huge_map(bytes, 0);
    if (!p && large) { /* not even room to align */
        bytes = (len + pool->page - 1) & ~(pool->page - 1);
        p = huge_map(bytes, 0);
    }
    if (!p)
        return NULL;
    if (large)
        huge_place(h, p, bytes);
    *got = bytes;
    return p;
}

static void huge_free(struct st_mpool *pool, void *memory, size_t got)
{
    (void)pool;
    munmap(memory, got);
}

/* In pages of the system: rings are small. */
static int huge_alloc_shared(struct st_mpool *pool, size_t len, struct st_shared_piece *out)
{
    return st_shared_alloc(&huge_of(pool)->file, len, out);
}

static void huge_free_shared(struct st_mpool *pool, const struct st_shared_piece *piece)
{
    st_shared_free(&huge_of(pool)->file, piece);
}

static bool huge_find_shared(struct st_mpool *pool, const void *memory, size_t len, struct st_shared_piece *out)
{
    return st_shared_find(&huge_of(pool)->file, memory, len, out);
}

static void huge_close(struct st_mpool *pool)
{
    st_shared_close(&huge_of(pool)->file);
    huge_place_end(huge_of(pool));
    free(pool);
}

static const struct st_mpool_ops ops = {.alloc = huge_alloc,
                                        .free = huge_free,
                                        .alloc_shared = huge_alloc_shared,
                                        .free_shared = huge_free_shared,
                                        .find_shared = huge_find_shared,
                                        .close = huge_close};

/* The kernel's own size of large pages, bytes; 0: it has none. */
static size_t huge_default_size(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[256];
    size_t kb = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Hugepagesize:", 13) == 0)
            kb = strtoul(line + 13, NULL, 10);
    if (f)
        fclose(f);
    return kb * 1024;
}

static int huge_open(strata_t *s, const struct st_component *c, const void *config, struct st_mpool **out)
{
    struct huge *h = calloc(1, sizeof(*h));

    (void)c;
    if (!h)
        return STRATA_ERR_NOMEM;
    h->base = (struct st_mpool){&ops, s, (size_t)sysconf(_SC_PAGESIZE)};
    h->config = config;
    h->file.fd = -1;
    h->large = h->config->page_size ? h->config->page_size : huge_default_size();
    if (h->large & (h->large - 1) || (h->large && h->large <= h->base.page)) {
        st_reject(s, c, "mpool_hugepage_page_size %zu is not a power of two above the page size of %zu", h->large,
                  h->base.page);
        free(h);
        return STRATA_ERR_PARAM;
    }
    *out = &h->base;
    return STRATA_OK;
}

static const struct st_param params[] = {
    {"page_size", ST_PARAM_SIZE, offsetof(struct huge_config, page_size), "0", 0, 0, "bytes",
     "Size of a large page; 0: the kernel's default (Hugepagesize in /proc/meminfo).", 5, NULL},
    {"place", ST_PARAM_BOOL, offsetof(struct huge_config, place), "true", 0, 0, NULL,
     "Whether memory comes from the NUMA node of the processors that this process is bound to.", 5, NULL},
};

static const struct st_mpool_component_ops component_ops = {.open = huge_open};

ST_COMPONENT(mpool, hugepage) = {
    ST_COMPONENT_HEAD("mpool", "hugepage", "0.1.0", "memory for devices in large pages, on the node where it is used"),
    .ops_size = sizeof(component_ops),
    .priority = 20,
    .params = params,
    .n_params = sizeof(params) / sizeof(params[0]),
    .config_size = sizeof(struct huge_config),
    .ops = &component_ops,
};

/* mpool "plain": anonymous memory in the system's pages. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <strata/sdk/mpool.h>

/* The pool. */
struct plain {
    struct st_mpool base;
    struct st_shared_file file;
};

static void *plain_alloc(struct st_mpool *pool, size_t len, size_t *got)
{
    size_t bytes = (len + pool->page - 1) & ~(pool->page - 1);

    if (bytes < len)
        return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    *got = bytes;
    return p;
}

static void plain_free(struct st_mpool *pool, void *memory, size_t got)
{
    (void)pool;
    munmap(memory, got);
}

static int plain_alloc_shared(struct st_mpool *pool, size_t len, struct st_shared_piece *out)
{
    return st_shared_alloc(&((struct plain *)(void *)pool)->file, len, out);
}

static void plain_free_shared(struct st_mpool *pool, const struct st_shared_piece *piece)
{
    st_shared_free(&((struct plain *)(void *)pool)->file, piece);
}

static bool plain_find_shared(struct st_mpool *pool, const void *memory, size_t len, struct st_shared_piece *out)
{
    return st_shared_find(&((struct plain *)(void *)pool)->file, memory, len, out);
}

static void plain_close(struct st_mpool *pool)
{
    st_shared_close(&((struct plain *)(void *)pool)->file);
    free(pool);
}

static const struct st_mpool_ops ops = {.alloc = plain_alloc,
                                        .free = plain_free,
                                        .alloc_shared = plain_alloc_shared,
                                        .free_shared = plain_free_shared,
                                        .find_shared = plain_find_shared,
                                        .close = plain_close};

static int plain_open(strata_t *s, const struct st_component *c, const void *config, struct st_mpool **out)
{
    struct plain *pool = malloc(sizeof(*pool));

    (void)c, (void)config;
    if (!pool)
        return STRATA_ERR_NOMEM;
    *pool = (struct plain){.base = {&ops, s, (size_t)sysconf(_SC_PAGESIZE)}, .file = {.fd = -1}};
    *out = &pool->base;
    return STRATA_OK;
}

static const struct st_mpool_component_ops component_ops = {.open = plain_open};

ST_COMPONENT(mpool, plain) = {
    ST_COMPONENT_HEAD("mpool", "plain", "0.1.0", "memory for devices in pages of the system's size"),
    .ops_size = sizeof(component_ops),
    .priority = 50,
    .ops = &component_ops,
};

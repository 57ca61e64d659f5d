/* Memory of each kind that a program has, whose pages change while its address stays. */
#ifndef TEST_SUPPORT_SHAKEN_MEMORY_H
#define TEST_SUPPORT_SHAKEN_MEMORY_H

#include "support/pinning_device.h"
#include "support/random.h"

#include <sys/mman.h>
#include <sys/shm.h>

enum { PAGES = 6 };

enum kind { NOTHING, MALLOCED, MAPPED, SEGMENT, HEAP };

struct buffer {
    enum kind kind;
    char *at; /* on a page boundary */
    size_t pages;
    void *block; /* malloc's */
};

static char *map_at(void *at, size_t pages, int flags)
{
    char *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static void make_buffer(struct rnd *rnd, struct buffer *b)
{
    *b = (struct buffer){.kind = MAPPED, .pages = 1 + rnd_below(rnd, PAGES)};
    uint32_t which = rnd_below(rnd, 8);
    if (which < 3) {
        b->kind = MALLOCED;
        /* Some are mapped by malloc, some are in its arenas. */
        b->block = malloc(b->pages * PAGE + PAGE + (rnd_below(rnd, 2) ? 200000 : 0));
        CHECK(b->block);
        b->at = (char *)(((uintptr_t)b->block + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    } else if (which == 3) {
        int id = shmget(IPC_PRIVATE, b->pages * PAGE, IPC_CREAT | 0600);
        b->kind = SEGMENT;
        if (id < 0 || (b->at = shmat(id, NULL, 0)) == (char *)-1) {
            b->kind = MAPPED;
            b->at = map_at(NULL, b->pages, 0);
        }
        if (id >= 0)
            CHECK(shmctl(id, IPC_RMID, NULL) == 0);
    } else {
        b->at = map_at(NULL, b->pages, 0);
    }
}

static void drop_buffer(struct buffer *b)
{
    if (b->kind == MALLOCED)
        free(b->block);
    else if (b->kind == SEGMENT)
        CHECK(shmdt(b->at) == 0);
    else if (b->kind == MAPPED)
        CHECK(munmap(b->at, b->pages * PAGE) == 0);
    b->kind = NOTHING;
}

/* The pages change, the addresses stay. */
static void shake_buffer(struct rnd *rnd, struct buffer *b)
{
    static const int advice[] = {MADV_DONTNEED, MADV_FREE};
    size_t from = rnd_below(rnd, (uint32_t)b->pages), n = 1 + rnd_below(rnd, (uint32_t)(b->pages - from));
    char *at = b->at + from * PAGE;
    switch (rnd_below(rnd, 5)) {
    case 0:
        CHECK(madvise(at, n * PAGE, b->kind == SEGMENT ? MADV_DONTNEED : advice[rnd_below(rnd, 2)]) == 0);
        break;
    case 1:
        if (b->kind == MAPPED)
            CHECK(map_at(at, n, MAP_FIXED) == at);
        break;
    case 2: /* away, and others come */
        if (b->kind == MAPPED) {
            CHECK(munmap(b->at, b->pages * PAGE) == 0);
            b->at = map_at(b->at, b->pages, 0);
        }
        break;
    case 3: /* other pages move in */
        if (b->kind == MAPPED) {
            char *other = map_at(NULL, n, 0);
            CHECK(mremap(other, n * PAGE, n * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
        }
        break;
    default:
        if (b->kind == MAPPED && b->pages > 1) { /* cut off, and grown again */
            CHECK(mremap(b->at, b->pages * PAGE, (b->pages - 1) * PAGE, 0) == b->at);
            char *p = mremap(b->at, (b->pages - 1) * PAGE, b->pages * PAGE, MREMAP_MAYMOVE);
            if (p == MAP_FAILED) /* it is of pieces by now, that do not grow together */
                b->pages--;
            else
                b->at = p;
        }
        break;
    }
}

#endif

/* What the tests with other libraries in the process share: every kind of event is seen by us. */
#ifndef MEMORY_INTERCEPT_TESTS_BESIDE_H
#define MEMORY_INTERCEPT_TESTS_BESIDE_H

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kept.h"

#define BY_NAME "memory=intercept rcache=tree"

static inline char *new_pages(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

/* Each event is seen by us. */
static inline void all_seen(void)
{
    char *a = new_pages(8), *b = new_pages(8);
    keep(a, PAGE);
    CHECK(madvise(a, PAGE, MADV_DONTNEED) == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK(mmap(a, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a);
    CHECK(!was_kept(a, PAGE));
    keep(a + 7 * PAGE, PAGE);
    CHECK(mremap(a, 8 * PAGE, 7 * PAGE, 0) == a);
    CHECK(!was_kept(a + 7 * PAGE, PAGE));
    CHECK(was_kept(a, PAGE));
    CHECK(munmap(a, 7 * PAGE) == 0);
    CHECK(!was_kept(a, PAGE));
    CHECK(munmap(b, 8 * PAGE) == 0);
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* and so it stays */
    a = malloc(4 << 20);                  /* more than the heap has room for */
    b = place(a);
    keep(a, PAGE);
    free(a);
    CHECK(!was_kept(b, PAGE));
    heap_has_room();
    CHECK(sbrk(4 * PAGE) != (void *)-1);
    a = (char *)(((uintptr_t)sbrk(0) - 2 * PAGE) & ~(uintptr_t)(PAGE - 1));
    keep(a, PAGE);
    CHECK(sbrk(-4 * PAGE) != (void *)-1);
    CHECK(!was_kept(a, PAGE));
}

#endif

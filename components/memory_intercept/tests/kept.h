/* What tests of the component share: a context whose cache is told by it, and whether a range is still kept there. */
#ifndef MEMORY_INTERCEPT_TESTS_KEPT_H
#define MEMORY_INTERCEPT_TESTS_KEPT_H

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include "support/fake_registrar.h"
#include "support/world.h"

/* A whole number of pages on every kernel. */
enum { PAGE = 65536 };

static struct {
    struct tw_world *world;
    strata_t *s;
    struct st_rcache *cache;
    struct fake_registrar device;
} kept;

/* Sanitizers are tools under which it must be asked for. */
static inline void kept_begin_at(const char *settings, strata_thread_level_t level)
{
    struct tw_options o = {.n = 1, .settings = settings, .level = level};
    char err[1024] = "";
    kept.world = tw_create(&o);
    CHECK_MSG(tw_init(kept.world, 0, &kept.s, err, sizeof(err)) == STRATA_OK, "%s", err);
    kept.cache = st_rcache(kept.s);
    CHECK(kept.cache && kept.cache->memory && !strcmp(kept.cache->memory->name, "intercept"));
    fake_registrar_start(&kept.device, kept.cache, "fake");
}

static inline void kept_begin(const char *settings)
{
    kept_begin_at(settings, STRATA_THREAD_SINGLE);
}

static inline void kept_end(void)
{
    fake_registrar_stop(&kept.device, kept.cache);
    CHECK_OK(strata_finalize(kept.s));
    tw_destroy(kept.world);
}

/* Whether the range was kept; it is in any case from now on. The device never looks at the memory. */
static inline bool was_kept(const void *at, size_t n)
{
    struct st_rcache_entry *e;
    uint64_t makes = kept.device.makes;
    CHECK_OK(kept.cache->ops->get(kept.cache, &kept.device.client, at, n, 0, &e));
    kept.cache->ops->put(kept.cache, e);
    return kept.device.makes == makes;
}

static inline void keep(const void *at, size_t n)
{
    (void)was_kept(at, n);
    CHECK(was_kept(at, n));
}

/* Where p points, for a look at the cache after the memory has been freed. */
static inline void *place(void *p)
{
    __asm__ volatile("" : "+r"(p));
    return p;
}

/* What malloc takes in the meantime must not move the heap's end: it has room enough below. */
static inline void heap_has_room(void)
{
    void *volatile room;
    mallopt(M_MMAP_THRESHOLD, 1 << 24);
    mallopt(M_TRIM_THRESHOLD, 1 << 24);
    room = malloc(1 << 20);
    free(room);
}

#endif

/* A device for tests of the rcache framework: it registers memory that need not exist, knows what is registered, and
 * fails when it is told to. A registration remembers the time of its making, so that a test can tell a stale one. Not
 * thread safe, as the callbacks of an rcache need not be. */
#ifndef TEST_SUPPORT_FAKE_REGISTRAR_H
#define TEST_SUPPORT_FAKE_REGISTRAR_H

#include <strata/sdk/rcache.h>

struct fake_registration {
    struct fake_registration *next, *prev;
    uintptr_t from, to;
    uint32_t access;
    uint64_t made_at; /* fake_registrar.clock then */
    uint64_t mark;    /* the test's */
};

struct fake_registrar {
    struct st_rcache_client client;
    struct fake_registration all; /* head of a ring */
    uint64_t clock;               /* set by the test */
    uint64_t n, bytes;            /* registered now */
    uint64_t makes, unmakes, refused;
    uint64_t max_bytes;                  /* more is STRATA_ERR_NOMEM; 0: no limit */
    const struct fake_registrar *beside; /* NULL, or whose bytes count against max_bytes too */
    int fail_rc;                         /* the next make returns this, unless 0 */
    uint32_t extra;                      /* access that every registration is given beyond what was asked for */
};

/* Attaches it to the cache. */
void fake_registrar_start(struct fake_registrar *f, struct st_rcache *cache, const char *name);
/* Detaches it; everything must have been unmade. */
void fake_registrar_stop(struct fake_registrar *f, struct st_rcache *cache);
/* The registration behind an entry, after checking that they agree and that it is still registered. */
struct fake_registration *fake_registration(const struct fake_registrar *f, const struct st_rcache_entry *e);

#endif

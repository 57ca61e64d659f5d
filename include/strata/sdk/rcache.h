/* Contract of the rcache framework: registrations of memory with devices, and how long they are kept.
 *
 * One cache per context serves all devices and BTLs of it. Each of them is a client, with a callback that registers
 * memory and one that undoes it; only registrations of the same client are ever shared. A cache that keeps
 * registrations must be notified of unmapped memory (invalidate). Otherwise it would return registrations of pages that
 * are no longer mapped there, and data would be corrupted silently. A component sets `keeps` if it needs these
 * notifications; without a source of invalidations (memory.h) it is only chosen when the user names it.
 *
 * Threads. Every op but invalidate is called with the context's lock held, as the ops of a BTL are (btl.h): below
 * STRATA_THREAD_MULTIPLE one thread at a time is inside the context, at STRATA_THREAD_MULTIPLE the upper layer's lock
 * serialises. So these ops take no lock. invalidate may be called by any thread, with or without that lock, inside a
 * signal handler, inside malloc and free, and while another thread, or this one, is inside another op of the same
 * cache: it takes no lock, allocates nothing, and calls nobody.
 *
 * Callbacks. make and unmake are called from inside get, put, apply, flush and detach, with the context's lock held;
 * unmake also from before_fork, by any thread, one at a time with all others. They may allocate and free memory (and so
 * cause invalidate to be called); they may not call ops of the cache. */
#ifndef STRATA_SDK_RCACHE_H
#define STRATA_SDK_RCACHE_H

#include <strata/sdk/btl.h>
#include <strata/sdk/hint.h>
#include <strata/sdk/memory.h>
#include <strata/sdk/mpool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Access that a registration permits beyond reading by this process's own device. */
enum {
    ST_RCACHE_LOCAL_WRITE = 1u << 0,  /* the own device writes: receive, get */
    ST_RCACHE_REMOTE_READ = 1u << 1,  /* peers get */
    ST_RCACHE_REMOTE_WRITE = 1u << 2, /* peers put */
    ST_RCACHE_ATOMIC = 1u << 3        /* peers do atomics */
};

/* A device that registers memory. Lives in the client's memory, from attach to detach; name and callbacks are set
 * before attach and constant. */
struct st_rcache_client {
    const char *name; /* for reports: "btl_openib mlx5_0" */
    /* Registers [base, base + len), whole pages, with at least *access. STRATA_OK: *handle is set, and *access is the
     * access of the registration. Register writable memory for writing at once, because a later get may need it.
     * STRATA_ERR_NOMEM: a limit is reached; the cache retries after it has undone other registrations. Any other error
     * is passed to the caller of get unchanged. */
    int (*make)(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle);
    /* Undoes one make. The pages may be unmapped already, and other pages mapped there. */
    void (*unmake)(struct st_rcache_client *client, void *handle);
    void *own; /* for the cache, set by attach */
};

/* A registration. First member of the cache's own entry. Read only; valid from get to the matching put. */
struct st_rcache_entry {
    uintptr_t from;                  /* first byte, on a page boundary */
    uintptr_t to;                    /* behind the last byte, on a page boundary */
    void *handle;                    /* from make */
    struct st_rcache_client *client; /* that registered it */
    uint32_t access;                 /* ST_RCACHE_* bits of the registration */
    uint32_t refs;                   /* gets without a put */
};

/* Counters and contents of a cache. */
struct st_rcache_counters {
    uint64_t hits;          /* gets served by an existing registration */
    uint64_t misses;        /* gets that had to register, successfully or not */
    uint64_t evictions;     /* idle registrations undone because of a limit, or because make was out of memory */
    uint64_t invalidations; /* registrations removed because their memory was unmapped */
    uint64_t ranges;        /* ranges applied for these; ranges that cannot concern the cache are not counted */
    uint64_t overflows;     /* times that ranges were lost, and all registrations were removed instead */
    uint64_t entries;       /* registrations now */
    uint64_t bytes;     /* bytes registered now; pages of two registrations count twice, as they do for the kernel */
    uint64_t bytes_max; /* maximum of bytes */
};

struct st_rcache;
/* Operations of a cache. Only before_fork, hold and unhold may be NULL. */
struct st_rcache_ops {
    /* Adds a client. STRATA_OK or STRATA_ERR_NOMEM. */
    int (*attach)(struct st_rcache *cache, struct st_rcache_client *client);
    /* Undoes all registrations of a client, those in use too: no put for them may follow. */
    void (*detach)(struct st_rcache *cache, struct st_rcache_client *client);

    /* Returns a registration of the client that contains [base, base + len), len > 0, with at least `access`. It holds
     * a reference until put. Its memory was not reported by an invalidate that returned before this call. Ranges are
     * rounded to whole pages. STRATA_ERR_NOMEM: make was out of memory, and no idle registration is left to undo; the
     * caller copies through a registered buffer. STRATA_ERR_ARG: len is 0 or the range wraps around. Otherwise the
     * error of make. Sets *out only on success. */
    int (*get)(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len, uint32_t access,
               struct st_rcache_entry **out);
    /* Undoes one get. If the memory of an entry was unmapped during its use, the last put undoes the registration;
     * other entries may be kept, or be undone at once. */
    void (*put)(struct st_rcache *cache, struct st_rcache_entry *entry);

    /* Reports that the memory [from, to) is about to be unmapped, replaced or discarded. Called before the kernel, so
     * that the same addresses cannot be in use again when it returns. See the notes on threads above. The next get,
     * put, apply or flush removes the registrations. */
    void (*invalidate)(struct st_rcache *cache, uintptr_t from, uintptr_t to);
    /* Removes the registrations of reported memory; a few instructions if there are none. get and put do so themselves.
     * Progress calls this op, so that unmapped pages do not stay pinned in a program that does not communicate. */
    void (*apply)(struct st_rcache *cache);
    /* Undoes all idle registrations, for another part of the process that needs lockable memory. Returns their number.
     */
    size_t (*flush)(struct st_rcache *cache);
    /* Called before a fork, after an invalidate of all memory: undoes the idle registrations, so that the child gets
     * their pages. Called by the thread that forks, with or without the context's lock, while other threads may be
     * inside any op. It does not wait for them: if the cache is in use, it does nothing; other threads may wait for it.
     * NULL: the cache keeps nothing. */
    void (*before_fork)(struct st_rcache *cache);

    /* States that the memory [from, to) stays mapped until unhold: a registration in use of a part of it may serve
     * other gets, even in a cache that keeps no registrations. Both NULL: the cache does not use this. */
    void (*hold)(struct st_rcache *cache, uintptr_t from, uintptr_t to);
    /* Undoes one hold, with the same range. */
    void (*unhold)(struct st_rcache *cache, uintptr_t from, uintptr_t to);

    /* Returns the current counters. */
    void (*counters)(struct st_rcache *cache, struct st_rcache_counters *out);
    /* Reports the memory of the cache itself; the owner of registered memory reports it. */
    void (*mem_report)(struct st_rcache *cache, st_mem_line_fn line, void *arg);
    void (*close)(struct st_rcache *cache); /* after the last detach and the last invalidate */
};

/* First member of a cache's own struct. */
struct st_rcache {
    const struct st_rcache_ops *ops; /* the component's */
    strata_t *context;               /* to which it belongs */
    uintptr_t page;                  /* bytes in a page, a power of two */
    /* The source of memory events, or NULL. Set by the base after open. A cache that keeps registrations checks the
     * source's pulse in get, before the reported ranges, and calls its cover for each range that it is going to keep.
     */
    struct st_memory_source *memory;
};

/* What an rcache component's `ops` points to. */
struct st_rcache_component_ops {
    /* Makes the cache; no client exists yet. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_rcache **out);
    /* Whether registrations outlive their use, so that the cache must be notified of unmapped memory. */
    bool keeps;
};

/* The context's cache, for BTLs from their open to their close. The first call selects it, and a source of memory
 * events: both exist only if a BTL with a device opens. NULL: a component that the user named cannot be used, and the
 * error text is set; the BTL then fails to open. */
ST_API struct st_rcache *st_rcache(strata_t *s);
/* Whether it keeps registrations after their use, so that a second use of the same memory costs nothing. */
ST_API bool st_rcache_keeps(const strata_t *s);

/* The get for transports: if memory is exhausted, frees the spare blocks and retries. */
static inline int st_rcache_get(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len,
                                uint32_t access, struct st_rcache_entry **out)
{
    int rc = cache->ops->get(cache, client, base, len, access, out);
    if (ST_UNLIKELY(rc == STRATA_ERR_NOMEM) && st_mem_release_spare(cache->context))
        rc = cache->ops->get(cache, client, base, len, access, out);
    return rc;
}

/* Rounds a range to whole pages. STRATA_OK or STRATA_ERR_ARG; see get. */
static inline int st_rcache_round(const struct st_rcache *cache, const void *base, size_t len, uintptr_t *from,
                                  uintptr_t *to)
{
    uintptr_t first = (uintptr_t)base, mask = cache->page - 1;
    if (ST_UNLIKELY(len == 0 || len > UINTPTR_MAX - mask - first || first > UINTPTR_MAX - mask))
        return STRATA_ERR_ARG;
    *from = first & ~mask;
    *to = (first + len + mask) & ~mask;
    return STRATA_OK;
}

#ifdef __cplusplus
}
#endif
#endif

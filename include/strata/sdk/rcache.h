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

/* What a registration permits beyond reading by this process' own device. */
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
    /* Registers [base, base + len), whole pages, with at least *access. STRATA_OK with *handle set, and *access what it
     * was made with: what may be written as well as read is best made so at once, for whoever writes to it next;
     * STRATA_ERR_NOMEM: a limit is reached, worth another try when others have been unmade; any other error is passed
     * to the caller of get as it is. */
    int (*make)(struct st_rcache_client *client, void *base, size_t len, uint32_t *access, void **handle);
    /* Undoes one make. The pages may be unmapped already, or others be mapped there. */
    void (*unmake)(struct st_rcache_client *client, void *handle);
    void *own; /* the cache's, set by attach */
};

/* A registration. First member of the cache's own entry. Read only; valid from get to the matching put. */
struct st_rcache_entry {
    uintptr_t from;                  /* first byte, on a page boundary */
    uintptr_t to;                    /* behind the last byte, on a page boundary */
    void *handle;                    /* what make gave */
    struct st_rcache_client *client; /* whose it is */
    uint32_t access;                 /* ST_RCACHE_* bits it was made with */
    uint32_t refs;                   /* gets without their put */
};

/* What a cache has done so far, and what it holds. */
struct st_rcache_counters {
    uint64_t hits;          /* gets that an existing registration served */
    uint64_t misses;        /* gets that had to register, whether it worked or not */
    uint64_t evictions;     /* idle registrations undone to keep to a cap, or because make was out of memory */
    uint64_t invalidations; /* registrations taken out because their memory went away */
    uint64_t ranges;        /* ranges applied to make those; ranges that cannot concern the cache are not counted */
    uint64_t overflows;     /* times that ranges were lost, and everything was taken out instead */
    uint64_t entries;       /* registrations now */
    uint64_t bytes;     /* bytes registered now; what two registrations share counts twice, as it does for the kernel */
    uint64_t bytes_max; /* the most at any time */
};

struct st_rcache;
/* What a cache does. All but before_fork, hold and unhold must be there. */
struct st_rcache_ops {
    /* Makes a client known. STRATA_OK or STRATA_ERR_NOMEM. */
    int (*attach)(struct st_rcache *cache, struct st_rcache_client *client);
    /* Undoes all registrations of a client, those in use too: no put for them may follow. */
    void (*detach)(struct st_rcache *cache, struct st_rcache_client *client);

    /* A registration of the client that contains [base, base + len), len > 0, with at least `access`; pinned, its count
     * of references raised, until put. Never one whose memory was reported gone by an invalidate that returned before
     * this call. Ranges are rounded to whole pages. STRATA_ERR_NOMEM: make was out of memory and there is nothing idle
     * left to undo; the caller copies through a buffer that is registered already. STRATA_ERR_ARG: len is 0 or the
     * range wraps around. Else what make returned. Sets *out only on success. */
    int (*get)(struct st_rcache *cache, struct st_rcache_client *client, const void *base, size_t len, uint32_t access,
               struct st_rcache_entry **out);
    /* Undoes one get. An entry whose memory went away while it was in use is unmade by its last put; other entries may
     * be kept, or be unmade at once. */
    void (*put)(struct st_rcache *cache, struct st_rcache_entry *entry);

    /* The memory [from, to) is about to be unmapped, replaced or discarded: called before the kernel is, so that nobody
     * can have been given the same addresses again when it returns. See the notes on threads above. The registrations
     * are taken out by the next get, put, apply or flush. */
    void (*invalidate)(struct st_rcache *cache, uintptr_t from, uintptr_t to);
    /* Takes out what was reported by invalidate; a few instructions when there is nothing. get and put do it
     * themselves: this is for progress, so that dead pages do not stay pinned in a program that does not communicate.
     */
    void (*apply)(struct st_rcache *cache);
    /* Undoes all registrations that nobody uses: when another part of the process needs the memory that may be locked.
     * Number of them. */
    size_t (*flush)(struct st_rcache *cache);
    /* Before a fork, after the report of everything: undoes the registrations that nobody uses, so that the child has
     * their pages as they are. Called by the thread that forks, with or without the context's lock, while others may be
     * inside any op: it waits for nobody and then leaves it, and others may wait for it. NULL: nothing is kept. */
    void (*before_fork)(struct st_rcache *cache);

    /* From now on until unhold the memory [from, to) is certain to stay: a registration of part of it that is in use
     * may serve other gets, even in a cache that keeps none. NULL both: such a cache has nothing to gain. */
    void (*hold)(struct st_rcache *cache, uintptr_t from, uintptr_t to);
    /* Undoes one hold, with the same range. */
    void (*unhold)(struct st_rcache *cache, uintptr_t from, uintptr_t to);

    /* The counters as they are now. */
    void (*counters)(struct st_rcache *cache, struct st_rcache_counters *out);
    /* Memory that the cache itself needs; registered memory is its owner's to report. */
    void (*mem_report)(struct st_rcache *cache, st_mem_line_fn line, void *arg);
    void (*close)(struct st_rcache *cache); /* after the last detach; nobody calls invalidate any more */
};

/* First member of a cache's own struct. */
struct st_rcache {
    const struct st_rcache_ops *ops; /* the component's */
    strata_t *context;               /* that it belongs to */
    uintptr_t page;                  /* bytes in a page, a power of two */
    /* What tells it when memory goes away, or NULL. Set by the base after open. A cache that keeps registrations looks
     * at its pulse in get, before it looks at what was reported, and asks it to cover what it is going to keep. */
    struct st_memory_source *memory;
};

/* What an rcache component's `ops` points to. */
struct st_rcache_component_ops {
    /* Makes the cache; no client exists yet. */
    int (*open)(strata_t *s, const struct st_component *c, const void *config, struct st_rcache **out);
    /* Whether registrations outlive their use, so that the cache must be told when memory goes away. */
    bool keeps;
};

/* The context's cache, for BTLs from their open to their close. The first call chooses it, and a source of memory
 * events with it: so it is only made when a BTL opens that has a device, and a program without one is left alone. NULL:
 * what the user named cannot be used, and the text for the user is set; the BTL fails to open. */
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

/* Contract of the memory framework: sources of events that unmap memory.
 *
 * A registration cache (rcache.h) must be notified of memory that is unmapped, replaced or discarded. A source detects
 * these events: code that runs before the system calls, the kernel, or the program that embeds Strata. Mappings belong
 * to the process and not to a context, and so do sources: this framework is process-wide by nature. A source is started
 * once and never stopped; its reports go to all caches of the process that have registered for them (monitor.c).
 *
 * A source is only used after a self-test that makes each kind of event and expects its report. A source is only
 * started for a cache that keeps registrations: a program without such a cache is not changed.
 *
 * Threads. st_memory_gone may be called by any thread, in a signal handler, inside malloc, free, fork and dlclose: it
 * takes no lock and allocates nothing. start is called under a process-wide lock; cover and settle with the context's
 * lock held, by several contexts at once. */
#ifndef STRATA_SDK_MEMORY_H
#define STRATA_SDK_MEMORY_H

#include <strata/host.h>
#include <strata/sdk/atomic.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Events that unmap, replace or discard memory. */
enum st_memory_event {
    ST_MEMORY_MUNMAP,
    ST_MEMORY_MREMAP_MOVE,   /* moved elsewhere */
    ST_MEMORY_MREMAP_SHRINK, /* its end is cut off */
    ST_MEMORY_MAP_FIXED,     /* mmap over it */
    ST_MEMORY_DONTNEED,      /* madvise */
    ST_MEMORY_FREE,          /* madvise */
    ST_MEMORY_SHMDT,
    ST_MEMORY_SHM_REMAP, /* shmat over it */
    ST_MEMORY_BRK,       /* the heap's end is lowered */
    ST_MEMORY_MALLOC,    /* free gives a large block back: by the C library's own munmap */
    ST_MEMORY_DLCLOSE,   /* by the loader's */
    ST_MEMORY_EVENTS
};

/* A source that has been started: static memory of the component. */
struct st_memory_source {
    const char *name; /* the component's */
    /* A word that equals `steady` while all past events that the source detects have been passed to st_memory_gone. A
     * look-up compares the two, and calls settle first if they differ. Never NULL. */
    const ST_ATOMIC(uint64_t) * pulse;
    ST_ATOMIC(uint64_t) steady; /* see pulse */
    /* Called if they differ: returns when all past events have been reported, at least those of [from, to), whole
     * pages; from == to: of no specific range. False: events may have been missed, and all cached registrations must be
     * removed. May be NULL if the word never changes. */
    bool (*settle)(struct st_memory_source *source, uintptr_t from, uintptr_t to);
    /* Whether events of [from, to), whole pages, will be reported from now on. Called before the range is cached.
     * False: the range must not be cached. NULL: all memory is watched. */
    bool (*cover)(struct st_memory_source *source, uintptr_t from, uintptr_t to);
    /* Whether the source certainly detects an event that the self-test cannot make without harm: it must not lower the
     * heap's end while other threads may raise it, and there may be no System V memory. NULL: it does not. */
    bool (*vouches)(struct st_memory_source *source, enum st_memory_event event);
    /* Reports are made on the thread that causes the event, before the kernel acts. Otherwise they may be made later,
     * on another thread, and settle waits for them. */
    bool before;
    bool
        tested; /* set by the framework: the source has passed the self-test. A start that invalidates this clears it */
};

/* What a memory component's `ops` points to. */
struct st_memory_component_ops {
    /* Starts the source for the whole process, or finds it started already: once for each context that needs a source,
     * one at a time. `host` is the embedder's table or NULL. STRATA_OK with *out set, or an error with st_reject's
     * reason. Whether it works is then tested. */
    int (*start)(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                 struct st_memory_source **out);
    /* The source changes the program's code: not started under a tool (st_memory_tool) unless the user names it. */
    bool patches;
};

/* For sources: reports that [from, to) is about to be unmapped, replaced or discarded, or, for a source that is not
 * `before`, has been. See the notes on threads above. A source may report a larger range. */
ST_API void st_memory_gone(uintptr_t from, uintptr_t to);

/* Makes each kind of event, on its own memory. Returns 0, or a bit (1 << event) for each kind that was not reported.
 * Takes no lock that a report or a look-up takes. */
ST_API uint32_t st_memory_test(struct st_memory_source *source);

/* Whether this process runs under a tool that replaces the allocator or the processor (address or thread sanitizer,
 * valgrind): its name, or NULL. */
ST_API const char *st_memory_tool(void);

/* For caches: true if all past events have been passed to st_memory_gone. */
static inline bool st_memory_steady(const struct st_memory_source *source)
{
    return atomic_load_explicit(source->pulse, memory_order_acquire) ==
           atomic_load_explicit(&source->steady, memory_order_relaxed);
}

#ifdef __cplusplus
}
#endif
#endif

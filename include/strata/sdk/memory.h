/* Contract of the memory framework: sources of events that unmap memory.
 *
 * A registration cache (rcache.h) must be notified of memory that is unmapped, replaced or discarded. A source detects
 * these events: code that runs before the system calls, the kernel, or the program that embeds Strata. What is mapped
 * belongs to the process and not to a context, and so do sources: this framework is process-wide by nature. A source is
 * started once, is never stopped, and its reports go to all caches in the process that asked (monitor.c).
 *
 * A source is only used after a self-test in which each kind of event is fired and must be reported. It is only started
 * when something registers memory and keeps it: a program that needs no cache is never touched.
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
    /* A word that has the value `steady` as long as st_memory_gone has been called for all that the source will ever
     * report of events that are over. A look-up compares; when they differ it calls settle first. Never NULL. */
    const ST_ATOMIC(uint64_t) * pulse;
    ST_ATOMIC(uint64_t) steady; /* see pulse */
    /* Called when they differ: returns when all that is over has been reported, of [from, to), whole pages, at least;
     * from == to: of no range in particular. False: events may have been missed, and whatever is cached must be taken
     * for gone. May be NULL when the word never changes. */
    bool (*settle)(struct st_memory_source *source, uintptr_t from, uintptr_t to);
    /* Whether events of [from, to), whole pages, will be reported from now on. Called before the range is cached. NULL:
     * all memory is watched anyway. False: it must not be kept. */
    bool (*cover)(struct st_memory_source *source, uintptr_t from, uintptr_t to);
    /* Whether the source is sure to see an event that cannot be fired here without harm: a self-test must not lower the
     * heap's end while other threads may raise it, and there may be no System V memory. NULL: it is not. */
    bool (*vouches)(struct st_memory_source *source, enum st_memory_event event);
    /* Reports come on the thread that makes the event, before the kernel does it. Else they may come on another thread
     * and later, and settle closes the gap. */
    bool before;
    bool tested; /* the framework's: it has passed the self-test. A start that makes that void clears it */
};

/* What a memory component's `ops` points to. */
struct st_memory_component_ops {
    /* Starts the source for the whole process, or finds it started already: once for each context that needs a source,
     * one at a time. `host` is the embedder's table or NULL. STRATA_OK with *out set, or an error with st_reject's
     * reason. Whether it works is then tested. */
    int (*start)(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                 struct st_memory_source **out);
    /* It changes the program's code: not started under a tool (st_memory_tool) unless it is asked for by name. */
    bool patches;
};

/* Sources call this: [from, to) is about to be, or for a source that is not `before`, has been unmapped, replaced or
 * discarded. See the notes on threads above. Reporting more than what goes away is allowed. */
ST_API void st_memory_gone(uintptr_t from, uintptr_t to);

/* Fires each kind of event, on memory of its own, and sees what is reported: 0, or a bit (1 << event) for each kind
 * that was not. Takes no lock that a report or a look-up takes. */
ST_API uint32_t st_memory_test(struct st_memory_source *source);

/* Whether this process runs under a tool that replaces the allocator or the processor (address or thread sanitizer,
 * valgrind): its name, or NULL. */
ST_API const char *st_memory_tool(void);

/* For caches: true when nothing has happened that st_memory_gone has not been told of. */
static inline bool st_memory_steady(const struct st_memory_source *source)
{
    return atomic_load_explicit(source->pulse, memory_order_acquire) ==
           atomic_load_explicit(&source->steady, memory_order_relaxed);
}

#ifdef __cplusplus
}
#endif
#endif

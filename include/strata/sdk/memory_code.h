/* For sources of memory events (memory.h) that patch the C library's code: handling of later changes of that code by
 * other libraries, after which the source may miss events.
 *
 * The pulse is the first word of munmap. If it changes, or any of the code has changed before a new registration is
 * cached, the source is installed again in front of the other patch, and the self-test decides whether it works. Events
 * until then may have been missed, so all cached registrations are removed. A source that does not work never covers
 * memory again. */
#ifndef STRATA_SDK_MEMORY_CODE_H
#define STRATA_SDK_MEMORY_CODE_H

#include <pthread.h>

#include <strata/sdk/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Static memory of the component: process-wide, as the code is. */
struct st_memory_code {
    /* Returned by start. The component sets pulse before st_memory_code_start returns. */
    struct st_memory_source source;
    /* Whether all of the code is unchanged since `again` last succeeded. Called by several threads at once. */
    bool (*as_left)(const struct st_memory_code *code);
    /* Patches the code as it is now so that the source is called first, and records the result. STRATA_OK: *steady is
     * the value of the pulse from now on. Otherwise an error with the reason in `why`. Called by one thread at a time,
     * while other threads run the code. */
    int (*again)(struct st_memory_code *code, uint64_t *steady, char *why, size_t why_size);
    /* For the framework. */
    pthread_mutex_t lock;
    bool hopeless; /* the source does not work beside the other patch; under lock */
};

/* For the component's start: installs the source for the first time, or again. The self-test follows. Returns the
 * result of `again`. */
ST_API int st_memory_code_start(struct st_memory_code *code, char *why, size_t why_size);
/* The source's settle: always false, since events may have been missed. */
ST_API bool st_memory_code_settle(struct st_memory_source *source, uintptr_t from, uintptr_t to);
/* The source's cover: checks all of the code, which is cheap compared with a registration. */
ST_API bool st_memory_code_cover(struct st_memory_source *source, uintptr_t from, uintptr_t to);

/* Initialiser with the component's functions and the common ones. */
#define ST_MEMORY_CODE(component_name, vouches_fn, as_left_fn, again_fn)                                               \
    {                                                                                                                  \
        .source = {.name = component_name,                                                                             \
                   .settle = st_memory_code_settle,                                                                    \
                   .cover = st_memory_code_cover,                                                                      \
                   .vouches = vouches_fn,                                                                              \
                   .before = true},                                                                                    \
        .as_left = as_left_fn, .again = again_fn, .lock = PTHREAD_MUTEX_INITIALIZER                                    \
    }

#ifdef __cplusplus
}
#endif
#endif

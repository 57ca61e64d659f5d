/* For sources of memory events (memory.h) that live in the C library's code: what is done when another library changes
 * that code later, and they may not be told any more.
 *
 * The pulse is the first word of munmap. When it changes, or any of the code has changed before something new is kept,
 * the source is made to work again in front of the newcomer, and the self-test says whether it does. What happened
 * until then may have been missed, so everything that is cached is taken for gone. When it does not work the source
 * never covers anything again. */
#ifndef STRATA_SDK_MEMORY_CODE_H
#define STRATA_SDK_MEMORY_CODE_H

#include <pthread.h>

#include <strata/sdk/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Static memory of the component: process-wide, as the code is. */
struct st_memory_code {
    /* What start hands out. The component sets pulse by the time that st_memory_code_start returns. */
    struct st_memory_source source;
    /* Whether all of the code is as it was when `again` last succeeded. Called by several threads at once. */
    bool (*as_left)(const struct st_memory_code *code);
    /* Does what is needed to be told first with the code as it is now, and remembers it as that. STRATA_OK and in
     * *steady the value that the pulse has from now on, or an error with the reason in `why`. Called by one thread at a
     * time, with other threads running the code. */
    int (*again)(struct st_memory_code *code, uint64_t *steady, char *why, size_t why_size);
    /* The framework's. */
    pthread_mutex_t lock;
    bool hopeless; /* the newcomer cannot be lived with; under lock */
};

/* For the component's start: makes it work for the first time, or anew. Its self-test is then due. Returns what `again`
 * does. */
ST_API int st_memory_code_start(struct st_memory_code *code, char *why, size_t why_size);
/* The source's settle: always false, as something may have been missed. */
ST_API bool st_memory_code_settle(struct st_memory_source *source, uintptr_t from, uintptr_t to);
/* The source's cover: looks at all of the code, which is cheap beside a registration. */
ST_API bool st_memory_code_cover(struct st_memory_source *source, uintptr_t from, uintptr_t to);

/* The value that it begins with: what the component names, and what is the same for all. */
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

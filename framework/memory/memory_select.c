/* Selection of the source of memory events: by priority, and by a test of what it sees. */
#include "framework/memory/memory_select.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/sdk/rte.h>
#include "framework/base/context.h"
#include "framework/base/select.h"

/* Sources belong to the process; so does the lock under which they are started. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static const char *const event_names[ST_MEMORY_EVENTS] = {
    [ST_MEMORY_MUNMAP] = "munmap",
    [ST_MEMORY_MREMAP_MOVE] = "mremap that moves",
    [ST_MEMORY_MREMAP_SHRINK] = "mremap that shrinks",
    [ST_MEMORY_MAP_FIXED] = "mmap with MAP_FIXED",
    [ST_MEMORY_DONTNEED] = "madvise with MADV_DONTNEED",
    [ST_MEMORY_FREE] = "madvise with MADV_FREE",
    [ST_MEMORY_SHMDT] = "shmdt",
    [ST_MEMORY_SHM_REMAP] = "shmat with SHM_REMAP",
    [ST_MEMORY_BRK] = "a lowered brk",
    [ST_MEMORY_MALLOC] = "free of a large block",
    [ST_MEMORY_DLCLOSE] = "dlclose",
};

static void memory_say_missed(strata_t *s, const struct st_component *c, uint32_t missed)
{
    char text[256] = "";
    size_t at = 0;
    for (unsigned e = 0; e < ST_MEMORY_EVENTS && at < sizeof(text); e++)
        if (missed & (1u << e)) {
            int n = snprintf(text + at, sizeof(text) - at, "%s%s", at ? ", " : "", event_names[e]);
            at += n > 0 ? (size_t)n : 0;
        }
    st_reject(s, c, "its self-test did not see: %s", text);
}

static int memory_open_source(strata_t *s, const struct st_candidate *c, void *arg)
{
    const struct st_memory_component_ops *ops = c->component->ops;
    struct st_memory_source *source = NULL;
    const char *tool = st_memory_tool();
    uint32_t missed;

    (void)arg;
    if (ops->patches && tool && !c->by_name) {
        st_reject(s, c->component, "this process runs under %s", tool);
        return STRATA_ERR_UNSUPPORTED;
    }
    int rc = ops->start(s, c->component, c->config, s->host, &source);
    if (rc != STRATA_OK)
        return rc;
    if (!source->pulse) {
        st_reject(s, c->component, "breaks the memory contract: it has no pulse");
        return STRATA_ERR_UNSUPPORTED;
    }
    if (!source->tested && (missed = st_memory_test(source)) != 0) {
        memory_say_missed(s, c->component, missed);
        return STRATA_ERR_UNSUPPORTED;
    }
    source->tested = true;
    s->memory = source;
    return STRATA_OK;
}

bool st_memory_named(strata_t *s)
{
    struct st_candidate *c = NULL;
    size_t n = 0;
    bool named = false;
    if (st_mca_waits(s->mca, "memory"))
        return false;
    if (st_mca_candidates(s->mca, "memory", sizeof(struct st_memory_component_ops), &c, &n) != STRATA_OK)
        return true; /* the selection will say what is wrong with it */
    for (size_t i = 0; i < n; i++)
        named = named || c[i].by_name;
    free(c);
    return named;
}

int st_memory_select(strata_t *s)
{
    if (s->memory_chosen)
        return STRATA_OK;
    bool named = st_memory_named(s);
    char *error = s->error;
    if (!named)
        s->error = NULL; /* to be without one is no failure */
    pthread_mutex_lock(&starting);
    int rc = st_select_one(s, "memory", sizeof(struct st_memory_component_ops), memory_open_source, NULL);
    pthread_mutex_unlock(&starting);
    s->error = error;
    if (rc != STRATA_OK && named)
        return rc;
    s->memory_chosen = true;
    if (rc != STRATA_OK && s->rte->rank == 0) {
        char why[768];
        st_rejected(s, "memory", why, sizeof(why));
        st_log(s, ST_LOG_INFO, "memory", "nothing tells when memory goes away, so no registration is kept: %s",
               why[0] ? why : "no component is installed or admitted by the list of components");
    }
    return STRATA_OK;
}

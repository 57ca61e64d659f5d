/* The component: when the code is changed. What is done when somebody changes it after us is the framework's
 * (strata/sdk/memory_code.h). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "intercept.h"

static bool intercept_vouches(struct st_memory_source *source, enum st_memory_event event)
{
    (void)source;
    for (size_t i = 0; i < intercept_n_entries; i++) {
        const struct intercept_entry *e = &intercept_entries[i];
        if (e->at && e->event == event && !intercept_ours(e))
            return false;
    }
    return true;
}

static bool intercept_as_left(const struct st_memory_code *code)
{
    (void)code;
    return intercept_all_ours(intercept_entries, intercept_n_entries);
}

/* The code is changed, so that we come first and whoever changed it before us second. */
static int intercept_again(struct st_memory_code *code, uint64_t *steady, char *why, size_t why_size)
{
    int rc = intercept_change(intercept_entries, intercept_n_entries, why, why_size);
    if (!code->source.pulse)
        code->source.pulse = intercept_entries[0].word;
    *steady = intercept_entries[0].new_word;
    return rc;
}

/* Process-wide, as the code that is changed is. */
static struct st_memory_code code = ST_MEMORY_CODE("intercept", intercept_vouches, intercept_as_left, intercept_again);
static bool installed; /* under the framework's lock */

/* The code that the changed functions jump to must never be unmapped. */
static bool intercept_pin(const void *at)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(at, &info, (void **)&map, RTLD_DL_LINKMAP))
        return true; /* linked statically */
    if (!map || !map->l_name || !map->l_name[0])
        return true; /* in the program itself */
    return dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

static int intercept_start(strata_t *s, const struct st_component *c, const void *config, const strata_host_t *host,
                           struct st_memory_source **out)
{
    char why[256] = "";
    const char *missing = NULL;
    (void)config, (void)host;
    if (installed) {
        *out = &code.source;
        return STRATA_OK;
    }
    if (!intercept_find(intercept_entries, intercept_n_entries, &missing)) {
        st_reject(s, c, "the C library has no %s", missing);
        return STRATA_ERR_UNSUPPORTED;
    }
    if (!intercept_pin((const void *)intercept_start) || !intercept_pin((const void *)st_memory_gone)) {
        st_reject(s, c, "this library cannot be kept loaded until the process ends");
        return STRATA_ERR_UNSUPPORTED;
    }
    if (st_memory_code_start(&code, why, sizeof(why)) != STRATA_OK) {
        st_reject(s, c, "%s", why);
        return STRATA_ERR_UNSUPPORTED;
    }
    installed = true;
    *out = &code.source;
    return STRATA_OK;
}

static const struct st_memory_component_ops component_ops = {.start = intercept_start, .patches = true};

ST_COMPONENT(memory, intercept) = {
    ST_COMPONENT_HEAD("memory", "intercept", "0.1.0", "changes the code of munmap, mmap and the like to be told first"),
    .ops_size = sizeof(component_ops),
    .priority = 60,
    .ops = &component_ops,
};

/* Loads the second object of a component (sdk/component_body.h). */
#define _GNU_SOURCE
#include <strata/sdk/component_body.h>
#include "framework/mca/internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The plugin's folder is that of the object that `c` lies in. */
static int body_path(const struct st_component *c, char *path, size_t size)
{
    Dl_info object;
    if (!dladdr(c, &object) || !object.dli_fname)
        return STRATA_ERR_NOT_FOUND;
    const char *slash = strrchr(object.dli_fname, '/');
    int folder = slash ? (int)(slash + 1 - object.dli_fname) : 0;
    int n = snprintf(path, size, "%.*s%s_%s.so", folder, object.dli_fname, c->framework, c->name);
    return n < 0 || (size_t)n >= size ? STRATA_ERR_TRUNCATE : STRATA_OK;
}

const void *st_component_body(const struct st_component *c, char *why, size_t why_size)
{
    char path[4096], symbol[300], reason[512];
    if (body_path(c, path, sizeof(path))) {
        st_mca_fail(0, why, why_size, "the folder of its plugin cannot be told");
        return NULL;
    }
    if (st_elf_check(path, reason, sizeof(reason))) {
        st_mca_fail(0, why, why_size, "%s: %s", path, reason);
        return NULL;
    }
    /* Never closed, as plugins are not: libraries that it pulls in leave fork handlers behind. */
    void *body = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!body) {
        const char *text = dlerror();
        st_mca_fail(0, why, why_size, "cannot be loaded: %s", text ? text : path);
        return NULL;
    }
    snprintf(symbol, sizeof(symbol), "st_body_%s_%s", c->framework, c->name);
    const void *ops = dlsym(body, symbol);
    if (!ops)
        st_mca_fail(0, why, why_size, "%s has no symbol %s", path, symbol);
    return ops;
}

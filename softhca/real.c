/* Finds what we stand in for. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include "interpose.h"

static void *find(const char *name, const char *version)
{
    /* The next one in the order of loading: others may stand in for it too. */
    void *at = dlvsym(RTLD_NEXT, name, version);
    if (at)
        return at;
    /* A plugin's dependency is in no scope that we see. It stays loaded, as whoever uses its objects expects. */
    void *library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        at = dlvsym(library, name, version);
    return at || !library ? at : dlsym(library, name);
}

void *hca_real(_Atomic(void *) *found, const char *name, const char *version)
{
    void *at = atomic_load_explicit(found, memory_order_acquire);
    if (!at) {
        at = find(name, version);
        atomic_store_explicit(found, at, memory_order_release);
    }
    return at;
}

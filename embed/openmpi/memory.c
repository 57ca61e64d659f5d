/* Open MPI's own memory hooks as Strata's source of memory events, when Open MPI has them at work already: then one
 * monitor does for both. When it has not, Strata looks for itself; and Strata tests what it is told: those of 4.1.4 do
 * not see dlclose and are refused. */
#include "pml_strata.h"

#include "opal/memoryhooks/memory.h"

/* Inside malloc, free and the like: Strata allocates nothing and takes no lock there. */
static void gone(void *at, size_t length, void *data, bool from_alloc)
{
    (void)data;
    (void)from_alloc;
    strata_host_memory_gone(at, length);
}

int pml_strata_memory_watch(void *user)
{
    const int all = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;

    (void)user;
    if ((opal_mem_hooks_support_level() & all) != all)
        return STRATA_ERR_UNSUPPORTED;
    int rc = opal_mem_hooks_register_release(gone, NULL);
    return rc == OPAL_SUCCESS || rc == OPAL_EXISTS ? STRATA_OK : STRATA_ERR_UNSUPPORTED;
}

void pml_strata_memory_stop(void)
{
    (void)opal_mem_hooks_unregister_release(gone);
}

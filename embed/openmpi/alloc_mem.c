/* MPI_Alloc_mem and MPI_Free_mem by strata_host_mem_alloc and strata_mem_free: an mpool component of Open MPI's, put
 * into the list of that framework while there is a context.
 *
 * Open MPI asks each component of the list, at each MPI_Alloc_mem, for a module and a priority; an answer above its own
 * (50) has the memory come from there, NULL makes it come from malloc. It remembers for each block which module gave
 * it. */
#include "pml_strata.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/mpool/base/base.h"

/* Above plain malloc (50), below a module that fits the hints of the call: Open MPI's hugepage answers 70 to a size of
 * pages that it has, 100 to its name. */
enum { PRIORITY = 60, PRIORITY_BY_NAME = 100 };

static mca_base_component_list_item_t *listed;

/* By the hints of one call, the value of the info key mpool_hints: "key=value,key=value", or NULL. */
static int priority_by(const char *hints)
{
    static const char key[] = "mpool=", name[] = "strata";

    for (const char *at = hints; at && *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n >= sizeof key - 1 && strncasecmp(at, key, sizeof key - 1) == 0) {
            bool us = n == sizeof key + sizeof name - 2 && strncasecmp(at + sizeof key - 1, name, sizeof name - 1) == 0;
            return us ? PRIORITY_BY_NAME : -1;
        }
        at += n;
    }
    return PRIORITY;
}

static void *allocate(mca_mpool_base_module_t *module, size_t size, size_t align, uint32_t flags)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = NULL;

    (void)module;
    (void)flags;
    /* Strata gives whole pages, and messages that are shorter than one are copied however they are sent. */
    if (size < page || align > page || strata_host_mem_alloc(pml_strata.context, size, &memory) != STRATA_OK)
        return NULL;
    return memory;
}

/* After the end of the context what was not given back is the program's until it ends. */
static void release(mca_mpool_base_module_t *module, void *memory)
{
    (void)module;
    if (pml_strata.context)
        strata_mem_free(pml_strata.context, memory);
}

static mca_mpool_base_component_t component;
static mca_mpool_base_module_t module = {
    .mpool_component = &component,
    .mpool_alloc = allocate,
    .mpool_free = release,
    .mpool_allocation_unit = 1,
    .mpool_name = (char *)(uintptr_t) "strata",
};

/* Only programs are answered: Open MPI's own transports look for an mpool while it starts, and would keep ours for
 * longer than there is a context. */
static int query(const char *hints, int *priority, mca_mpool_base_module_t **out)
{
    int found = priority_by(hints);

    if (!pml_strata.context || ompi_mpi_state != OMPI_MPI_STATE_INIT_COMPLETED || found < 0)
        return OPAL_ERR_NOT_AVAILABLE;
    if (found < PRIORITY_BY_NAME && !strata_host_memory_helps(pml_strata.context))
        return OPAL_ERR_NOT_AVAILABLE;
    *priority = found;
    *out = &module;
    return OPAL_SUCCESS;
}

static mca_mpool_base_component_t component = {
    .mpool_version = {PML_STRATA_MPOOL_VERSION, .mca_component_name = "strata",
                      .mca_component_major_version = STRATA_VERSION_MAJOR,
                      .mca_component_minor_version = STRATA_VERSION_MINOR, .mca_component_release_version = 0},
    .mpool_query = query,
};

/* Whether --mca mpool admits us. */
static bool admitted(void)
{
    const char *list = opal_mpool_base_framework.framework_selection;
    bool except = list && *list == '^', named = false;

    if (!list || !*list)
        return true;
    for (const char *at = list + except; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        named = named || (n == strlen("strata") && strncmp(at, "strata", n) == 0);
        at += n;
    }
    return named != except;
}

void pml_strata_alloc_mem_start(void)
{
    if (listed || !mca_base_framework_is_open(&opal_mpool_base_framework) || !admitted())
        return;
    listed = OBJ_NEW(mca_base_component_list_item_t);
    if (!listed)
        return;
    listed->cli_component = &component.mpool_version;
    opal_list_append(&opal_mpool_base_framework.framework_components, &listed->super);
}

void pml_strata_alloc_mem_stop(void)
{
    if (!listed)
        return;
    opal_list_remove_item(&opal_mpool_base_framework.framework_components, &listed->super);
    OBJ_RELEASE(listed);
    listed = NULL;
    if (pml_strata.context)
        strata_host_keep_memory(pml_strata.context);
}

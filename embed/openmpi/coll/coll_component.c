/* mca_coll_strata: registration and parameters. */
#include "coll_strata.h"

#include "ompi/mca/pml/pml.h"
#include "../compat.h"

#include <stdio.h>
#include <string.h>
#include <strata/sdk/info.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/output.h"

struct coll_strata coll_strata = {.lock = PTHREAD_MUTEX_INITIALIZER};
extern const mca_coll_base_component_t mca_coll_strata_component;

static int component_register(void)
{
    const mca_base_component_t *self = &mca_coll_strata_component.collm_version;
    coll_strata.priority = 0; /* off: docs/embed-openmpi.md says what was measured */
    coll_strata.most = 64;
    coll_strata.most_between = 16;
    coll_strata.list = "allreduce,allgather"; /* what was measured to be better */
    (void)mca_base_component_var_register(
        self, "priority",
        "Priority of collectives by Strata where the pml is strata: all that it has where the "
        "members of a communicator share a machine, alltoall(v) and allgather(v) "
        "elsewhere; tuned has 30; 0: never",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY, &coll_strata.priority);
    (void)mca_base_component_var_register(
        self, "ranks", "Largest communicator of one machine whose collectives go this way", MCA_BASE_VAR_TYPE_INT, NULL,
        0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY, &coll_strata.most);
    (void)mca_base_component_var_register(self, "ranks_between",
                                          "Largest communicator of several machines whose alltoalls and allgathers go "
                                          "this way",
                                          MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6,
                                          MCA_BASE_VAR_SCOPE_READONLY, &coll_strata.most_between);
    (void)mca_base_component_var_register(
        self, "operations",
        "Operations that go this way, with their nonblocking forms and those of blocks that differ by rank: a list of "
        "barrier, bcast, reduce, allreduce, allgather and alltoall, or all; the rest go where Open MPI sends them else",
        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY, &coll_strata.list);
    (void)mca_base_component_var_register(
        self, "between", "For tests: 1 takes every communicator for one of several machines", MCA_BASE_VAR_TYPE_INT,
        NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY, &coll_strata.between);
    return OMPI_SUCCESS;
}

/* Bits of enum coll_strata_operation; -1: the list has something else. NULL is Open MPI's empty string. */
static int component_operations(const char *list)
{
    static const char *const names[COLL_STRATA_OPERATIONS] = {"barrier",   "bcast",     "reduce",
                                                              "allreduce", "allgather", "alltoall"};
    int bits = 0;
    if (!list)
        return 0;
    if (strcmp(list, "all") == 0)
        return (1 << COLL_STRATA_OPERATIONS) - 1;
    for (const char *end; *list; list = *end ? end + 1 : end) {
        int found = 0;
        end = list + strcspn(list, ",");
        for (int i = 0; i < COLL_STRATA_OPERATIONS; i++)
            if (strlen(names[i]) == (size_t)(end - list) && strncmp(names[i], list, strlen(names[i])) == 0)
                found = 1 << i;
        if (!found)
            return -1;
        bits |= found;
    }
    return bits;
}

/* Says which parameter of the environment, where mpirun puts those of its command line, is none of component_register.
 */
static bool component_misspelt(void)
{
    static const char variable[] = "OMPI_MCA_coll_strata_";
    static const char *const names[] = {"priority", "ranks", "ranks_between", "operations", "between"};
    extern char **environ;
    for (char **e = environ; *e; e++) {
        const char *at = *e + sizeof variable - 1, *near;
        char name[64];
        bool known = strncmp(*e, variable, sizeof variable - 1) != 0;
        if (!known)
            snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
        for (size_t i = 0; !known && i < sizeof names / sizeof *names; i++)
            known = strcmp(name, names[i]) == 0;
        if (known)
            continue;
        near = st_info_nearest(name, names, sizeof names / sizeof *names);
        opal_output(0, "coll strata: there is no parameter coll_strata_%s%s%s%s: no operation goes by Strata", name,
                    near ? " (did you mean coll_strata_" : "", near ? near : "", near ? "?)" : "");
        return true;
    }
    return false;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    if (component_misspelt())
        return OMPI_ERROR;
    coll_strata.operations = component_operations(coll_strata.list);
    if (coll_strata.operations >= 0)
        return OMPI_SUCCESS;
    opal_output(0,
                "coll strata: coll_strata_operations is a list of barrier, bcast, reduce, allreduce, allgather and "
                "alltoall, or all, not %s: no operation goes by Strata",
                coll_strata.list);
    coll_strata.operations = 0;
    return OMPI_ERROR;
}

__attribute__((visibility("default"))) const mca_coll_base_component_t mca_coll_strata_component = {
    .collm_version = {COLL_STRATA_COMPONENT_VERSION, .mca_component_name = "strata",
                      .mca_component_major_version = STRATA_VERSION_MAJOR,
                      .mca_component_minor_version = STRATA_VERSION_MINOR, .mca_component_release_version = 0,
                      .mca_register_component_params = component_register},
    .collm_data.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT,
    .collm_init_query = component_init,
    .collm_comm_query = coll_strata_query,
};

/* mca_coll_strata: registration and parameters. */
#include "coll_strata.h"

#include "opal/mca/base/mca_base_var.h"

struct coll_strata coll_strata = {.lock = PTHREAD_MUTEX_INITIALIZER};
extern const mca_coll_base_component_t mca_coll_strata_component;

static int component_register(void)
{
    const mca_base_component_t *self = &mca_coll_strata_component.collm_version;
    coll_strata.priority = 0; /* off: docs/embed-openmpi.md says what was measured */
    coll_strata.most = 64;
    coll_strata.most_between = 16;
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
        self, "between", "For tests: 1 takes every communicator for one of several machines", MCA_BASE_VAR_TYPE_INT,
        NULL, 0, 0, OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY, &coll_strata.between);
    return OMPI_SUCCESS;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    return OMPI_SUCCESS;
}

__attribute__((visibility("default"))) const mca_coll_base_component_t mca_coll_strata_component = {
    .collm_version = {MCA_COLL_BASE_VERSION_2_0_0, .mca_component_name = "strata",
                      .mca_component_major_version = STRATA_VERSION_MAJOR,
                      .mca_component_minor_version = STRATA_VERSION_MINOR, .mca_component_release_version = 0,
                      .mca_register_component_params = component_register},
    .collm_data.param_field = MCA_BASE_METADATA_PARAM_CHECKPOINT,
    .collm_init_query = component_init,
    .collm_comm_query = coll_strata_query,
};

/* Communicators: one matching context of Strata's each. Messages that arrive before it exists here are held by Strata.
 */
#include "pml_strata.h"

#include <stdlib.h>

/* Strata's own world has id 0. */
static uint32_t id_of(struct ompi_communicator_t *comm)
{
    return (uint32_t)ompi_comm_get_cid(comm) + 1;
}

/* Member i is job rank i: true of the first job's MPI_COMM_WORLD and of what shares its group. */
static bool identity(ompi_group_t *group)
{
    return group == ompi_mpi_comm_world.comm.c_local_group && pml_strata.place == 1;
}

/* Job ranks of a group's members, malloc'ed. */
static int *members(ompi_group_t *group, int n, opal_process_name_t *stranger)
{
    int *world = malloc((size_t)n * sizeof(int));

    for (int i = 0; world && i < n; i++) {
        opal_process_name_t name = ompi_group_get_proc_name(group, i);
        world[i] = pml_strata_rank_of(&name);
        if (world[i] < 0) {
            *stranger = name;
            free(world);
            return NULL;
        }
    }
    return world;
}

int pml_strata_add_comm(struct ompi_communicator_t *comm)
{
    bool inter = OMPI_COMM_IS_INTER(comm);
    ompi_group_t *group = inter ? comm->c_remote_group : comm->c_local_group;
    int n = ompi_group_size(group), *world = NULL, rc;
    strata_comm_spec_t spec = {
        .size = sizeof spec, .id = id_of(comm), .rank = comm->c_my_rank, .n_ranks = n, .user = comm, .inter = inter};
    opal_process_name_t stranger = {0, 0};
    strata_comm_t *made = NULL;

    if (inter || !identity(group)) {
        world = members(group, n, &stranger);
        if (!world && stranger.jobid) {
            opal_output(0,
                        "pml strata: process %u of job %u belongs to another mpirun, which Strata cannot reach; use "
                        "--mca pml ob1 to connect jobs of several mpiruns",
                        stranger.vpid, stranger.jobid);
            return OMPI_ERR_UNREACH;
        }
        if (!world)
            return OMPI_ERR_OUT_OF_RESOURCE;
    }
    spec.world = world;
    rc = strata_comm_create(pml_strata.context, &spec, &made);
    free(world);
    if (rc != STRATA_OK) {
        opal_output(0, "pml strata: no matching context for communicator %u: %s", id_of(comm) - 1, strata_strerror(rc));
        return pml_strata_error(rc);
    }
    comm->c_pml_comm = (struct mca_pml_comm_t *)(void *)made;
    return OMPI_SUCCESS;
}

int pml_strata_del_comm(struct ompi_communicator_t *comm)
{
    if (comm->c_pml_comm)
        strata_comm_free(pml_strata_comm(comm));
    comm->c_pml_comm = NULL;
    return OMPI_SUCCESS;
}

/* A rank's view of an MPI beside tools/mpi-twin/port_mpi.h: see rank_strata.h. */
#ifndef MEMSCALE_RANK_MPI_H
#define MEMSCALE_RANK_MPI_H

#include <jansson.h>
#include <string.h>

#include "port_mpi.h"

static bool port_begin(struct port *p, const char *folder, struct meeting *m, int world, int n_real)
{
    int rc = MPI_Init(NULL, NULL);

    (void)folder, (void)m, (void)world, (void)n_real;
    if (rc != MPI_SUCCESS)
        port_fail(p, "MPI_Init", rc);
    MPI_Comm_rank(MPI_COMM_WORLD, &p->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &p->n);
    return true;
}

static bool port_end(struct port *p)
{
    (void)p;
    return MPI_Finalize() == MPI_SUCCESS;
}

static void port_fence(struct port *p)
{
    port_fail(p, "no barrier but by messages", 0);
}

static void port_poll(struct port *p)
{
    int flag;

    (void)p;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

static json_t *port_ours(struct port *p)
{
    (void)p;
    return json_object();
}

static json_t *port_parameters(struct port *p)
{
    (void)p;
    return json_object();
}

/* The first line of what it says, without a tab. */
static void port_version(char *text, size_t size)
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;

    MPI_Get_library_version(all, &n);
    all[strcspn(all, "\n")] = '\0';
    for (char *tab; (tab = strchr(all, '\t')) != NULL;)
        *tab = ' ';
    snprintf(text, size, "%.100s", all);
}

#endif

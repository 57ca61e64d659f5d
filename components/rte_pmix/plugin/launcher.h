/* What the environment tells of the launcher, before libpmix is loaded. */
#ifndef RTE_PMIX_LAUNCHER_H
#define RTE_PMIX_LAUNCHER_H

#include <stdbool.h>

/* True when a PMIx launcher started this process: PMIX_NAMESPACE, PMIX_RANK and a PMIX_SERVER_URI* are set. */
bool rte_pmix_launched(void);

/* A job of Open MPI's mpirun whose ranks are all on this machine. */
struct rte_pmix_job {
    const char *name;   /* PMIX_NAMESPACE */
    const char *folder; /* of this job's launcher, which removes it at the end; private to the user */
    int rank, size;
};

/* False when the environment does not describe such a job in full, or another launcher has started this process inside
 * one, or its folder is not the user's alone. */
bool rte_pmix_one_machine(struct rte_pmix_job *job);

#endif

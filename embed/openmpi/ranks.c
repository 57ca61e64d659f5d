/* Job ranks. Strata numbers the processes of one mpirun, those of spawned jobs included, in one space, and every
 * process must come to the same numbers without asking: the job's number within the mpirun (1 for the first, one more
 * for each spawn), then the process's number in the job. */
#include "pml_strata.h"

#define PROCESS_BITS 20 /* processes of one job; what is left of 31 bits counts jobs */

int pml_strata_rank_of(const opal_process_name_t *name)
{
    uint32_t local = name->jobid & 0xffffu;

    if ((name->jobid ^ pml_strata.jobid) >> 16 != 0 || local == 0 || local > 1u << (31 - PROCESS_BITS) ||
        name->vpid >> PROCESS_BITS != 0)
        return -1;
    uint32_t rank = (local - 1) << PROCESS_BITS | name->vpid;
    return rank < (uint32_t)STRATA_RANKS_OPEN ? (int)rank : -1;
}

opal_process_name_t pml_strata_name_of(int rank)
{
    opal_process_name_t name;

    name.jobid = (pml_strata.jobid & 0xffff0000u) | (((uint32_t)rank >> PROCESS_BITS) + 1);
    name.vpid = (uint32_t)rank & ((1u << PROCESS_BITS) - 1);
    return name;
}

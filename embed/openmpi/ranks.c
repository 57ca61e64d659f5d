/* Job ranks. Strata numbers the processes of one launch, those of spawned jobs included, in one space, and every
 * process must come to the same numbers without asking: the job's place in the launch (jobs.c), then the process's
 * number in the job. */
#include "pml_strata.h"

#define PROCESS_BITS 20 /* processes of one job; what is left of 31 bits counts jobs */

int pml_strata_rank_of(const opal_process_name_t *name)
{
    uint32_t place = name->jobid == pml_strata.jobid ? pml_strata.place : pml_strata_job_place(name->jobid);

    if (place == 0 || place > 1u << (31 - PROCESS_BITS) || name->vpid >> PROCESS_BITS != 0)
        return -1;
    uint32_t rank = (place - 1) << PROCESS_BITS | name->vpid;
    return rank < (uint32_t)STRATA_RANKS_OPEN ? (int)rank : -1;
}

opal_process_name_t pml_strata_name_of(int rank)
{
    uint32_t place = ((uint32_t)rank >> PROCESS_BITS) + 1;
    opal_process_name_t name;

    name.jobid = place == pml_strata.place ? pml_strata.jobid : pml_strata_job_at(place);
    name.vpid = (uint32_t)rank & ((1u << PROCESS_BITS) - 1);
    return name;
}

/* The place of a job among those of one launch, the first being 1, as every process can tell by itself.
 *
 * Open MPI 4.1: the number that mpirun gave the job, the low 16 bits of its jobid; the high bits are the mpirun's. For
 * a job of another launcher, such as srun, Open MPI makes the jobid of the job's name in PMIx: that job is the only one
 * of its launch, since it can spawn none.
 * Open MPI 5.0: PMIx names jobs, and jobids are only hashes of the names. The jobs of one prterun are BASE@1, BASE@2
 * and so on; srun and strata-run start one job, whose name has no such end. */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if OMPI_MAJOR_VERSION >= 5
/* Bytes of a name in front of "@PLACE", and the place. */
static size_t job_split(const char *name, uint32_t *place)
{
    const char *at = strrchr(name, '@');
    char *end = NULL;
    unsigned long n = at && at[1] >= '0' && at[1] <= '9' ? strtoul(at + 1, &end, 10) : 0;

    if (!end || *end || n == 0 || n > UINT32_MAX) {
        *place = 1;
        return strlen(name);
    }
    *place = (uint32_t)n;
    return (size_t)(at - name);
}

static bool job_name(uint32_t jobid, pmix_nspace_t name)
{
    return opal_pmix_convert_jobid(name, jobid) == OPAL_SUCCESS && name[0];
}

uint32_t pml_strata_job_place(uint32_t jobid)
{
    pmix_nspace_t name, mine;
    uint32_t place, my_place;

    if (!job_name(jobid, name) || !job_name(pml_strata.jobid, mine))
        return 0;
    size_t base = job_split(name, &place);
    return base == job_split(mine, &my_place) && memcmp(name, mine, base) == 0 ? place : 0;
}

uint32_t pml_strata_job_at(uint32_t place)
{
    pmix_nspace_t name;
    uint32_t my_place, jobid;

    if (!job_name(pml_strata.jobid, name))
        return OPAL_JOBID_INVALID;
    size_t base = job_split(name, &my_place);
    if (place == my_place)
        return pml_strata.jobid;
    snprintf(name + base, sizeof(pmix_nspace_t) - base, "@%u", place);
    return opal_pmix_convert_nspace(&jobid, name) == OPAL_SUCCESS ? jobid : OPAL_JOBID_INVALID;
}

void pml_strata_job_family(char *text, size_t size)
{
    pmix_nspace_t name;
    uint32_t place, hash = 2166136261u; /* FNV-1a: the name may be longer than the text */

    size_t base = job_name(pml_strata.jobid, name) ? job_split(name, &place) : 0;
    for (size_t i = 0; i < base; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    snprintf(text, size, "%08x", hash);
}
#else
/* By this variable Open MPI itself decides how it makes the jobid. */
static bool by_mpirun(void)
{
    return getenv("OMPI_MCA_orte_launch") != NULL;
}

uint32_t pml_strata_job_place(uint32_t jobid)
{
    if (!by_mpirun())
        return jobid == pml_strata.jobid;
    return (jobid ^ pml_strata.jobid) >> 16 ? 0 : jobid & 0xffffu;
}

uint32_t pml_strata_job_at(uint32_t place)
{
    if (!by_mpirun())
        return place == 1 ? pml_strata.jobid : OPAL_JOBID_INVALID;
    return place <= 0xffffu ? (pml_strata.jobid & 0xffff0000u) | place : OPAL_JOBID_INVALID;
}

/* Never the same for a job of mpirun and another one: the first has at most five digits. */
void pml_strata_job_family(char *text, size_t size)
{
    if (by_mpirun())
        snprintf(text, size, "%u", pml_strata.jobid >> 16);
    else
        snprintf(text, size, "%08x", pml_strata.jobid);
}
#endif

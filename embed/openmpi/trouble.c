/* When Strata cannot be used: one message that names the rank and the reason, and a job that ends.
 *
 * Open MPI's help system would send the text to mpirun, which counts repetitions; with Debian's 4.1.4 it loses some. So
 * lines go to stderr, and what all processes have in common is said by the first: the others wait a moment, in which
 * the end of the first ends them. */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIVE_WAY_US 400000

static uint32_t my_number(void)
{
    return ((const opal_process_name_t *)OMPI_PROC_MY_NAME)->vpid;
}

void pml_strata_give_way(void)
{
    static bool once; /* of this process; a second error is said at once */

    if (my_number() != 0 && !once)
        usleep(GIVE_WAY_US);
    once = true;
}

void pml_strata_give_up(const char *why)
{
    pml_strata_give_way();
    /* Not by ompi_rte_abort: that of 5.0 hands the text to the launcher, which does not print it. */
    opal_output(0, "pml strata: Strata cannot be used by rank %u on host %s: %s", (unsigned)my_number(),
                OPAL_PROC_MY_HOSTNAME, why);
    ompi_rte_abort(1, NULL);
}

int pml_strata_revoke_comm(struct ompi_communicator_t *comm, bool coll_only)
{
    char why[200];

    if (coll_only)
        return OMPI_ERR_NOT_IMPLEMENTED;
    snprintf(why, sizeof why, "MPIX_Comm_revoke of communicator %u is not supported; use --mca pml ob1",
             (unsigned)ompi_comm_get_cid(comm));
    pml_strata_give_up(why);
}

/* What processes must have in common to understand each other. Open MPI does not write to the key, and does not say so.
 */
static char version_key[] = "strata.version";
static void version_text(char *out, size_t size)
{
    snprintf(out, size, "%d.%d", STRATA_VERSION_MAJOR, STRATA_VERSION_MINOR);
}

int pml_strata_publish_version(void)
{
    char text[32];
    int rc;

    version_text(text, sizeof text);
    OPAL_MODEX_SEND_STRING(rc, PML_STRATA_SCOPE, version_key, text, (pml_strata_length_t)strlen(text));
    return rc == OPAL_SUCCESS ? STRATA_OK : STRATA_ERR_SYSTEM;
}

bool pml_strata_same_version(const opal_process_name_t *name, char *why, size_t size)
{
    opal_process_name_t first = {.jobid = name->jobid, .vpid = 0};
    char mine[32];
    uint8_t *text = NULL;
    pml_strata_length_t length = 0;
    bool same;
    int rc;

    if (first.jobid == pml_strata.jobid && my_number() == 0)
        return true;
    version_text(mine, sizeof mine);
    OPAL_MODEX_RECV_STRING(rc, version_key, &first, &text, &length);
    same = rc == OPAL_SUCCESS && text && (size_t)length == strlen(mine) && memcmp(text, mine, (size_t)length) == 0;
    if (rc != OPAL_SUCCESS || !text)
        snprintf(why, size,
                 "its peer, rank 0 of job %u, does not use Strata; give every rank --mca pml strata and the plugin",
                 pml_strata_job_place(first.jobid));
    else if (!same)
        snprintf(why, size, "it has version %s, and its peer, rank 0 of job %u, has version %.*s", mine,
                 pml_strata_job_place(first.jobid), (int)length, (const char *)text);
    free(text);
    return same;
}

/* Open MPI as Strata's embedder: who we are, what peers have published, locality, progress of the rest of the library.
 */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/hwloc/base/base.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

#define HOST_KEY "host"

static void key_name(char *out, size_t size, const char *key)
{
    snprintf(out, size, "strata.%s", key);
}

static int host_put(void *user, const char *key, const void *blob, size_t length)
{
    char name[128];
    int rc;

    (void)user;
    key_name(name, sizeof name, key);
    OPAL_MODEX_SEND_STRING(rc, PML_STRATA_SCOPE, name, blob, (pml_strata_length_t)length);
    return rc == OPAL_SUCCESS ? STRATA_OK : STRATA_ERR_SYSTEM;
}

static int host_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    opal_process_name_t peer = pml_strata_name_of(rank);
    uint8_t *data = NULL;
    pml_strata_length_t size = 0;
    char name[128];
    int rc;

    (void)user;
    key_name(name, sizeof name, key);
    OPAL_MODEX_RECV_STRING(rc, name, &peer, &data, &size);
    if (rc != OPAL_SUCCESS || !data || (int32_t)size < 0)
        return STRATA_ERR_NOT_FOUND;
    *blob = data; /* malloc'ed by PMIx: Strata frees it */
    *length = (size_t)size;
    return STRATA_OK;
}

/* Strata fences when a context ends; MPI_Finalize has done so before the PML is closed. */
static int host_fence(void *user)
{
    (void)user;
    return STRATA_OK;
}

/* Open MPI knows the locality of its own job and of jobs that this process has connected to. Of others, such as the
 * job that spawned the one that spawned us, we ask what every process has published: its host. */
static int host_is_local(void *user, int rank)
{
    opal_proc_t *proc = ompi_proc_for_name(pml_strata_name_of(rank));
    void *host = NULL;
    size_t length = 0;

    if (proc && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags))
        return 1;
    if (host_get(user, rank, HOST_KEY, &host, &length) != STRATA_OK)
        return 0;
    bool same = length == strlen(OPAL_PROC_MY_HOSTNAME) && memcmp(host, OPAL_PROC_MY_HOSTNAME, length) == 0;
    free(host);
    return same;
}

static const int *host_local_ranks(void *user, int *n)
{
    (void)user;
    *n = pml_strata.n_local;
    return pml_strata.local_ranks;
}

static const char *host_of(void *user, int rank)
{
    opal_process_name_t name = pml_strata_name_of(rank);
    ompi_proc_t *proc = ompi_proc_find(&name);

    (void)user;
    return proc ? opal_get_proc_hostname(&proc->super) : NULL;
}

static void host_abort(void *user, int status, const char *reason)
{
    (void)user;
    opal_output(0, "strata: %s", reason);
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, status);
}

static void host_log(void *user, int level, const char *text)
{
    (void)user;
    if (level == 0)
        pml_strata_give_way();
    opal_output(0, "%s", text);
}

static int host_idle(void *user)
{
    uint64_t before = pml_strata.events;

    (void)user;
    opal_progress(); /* calls our own progress too, and does not say what it did */
    return pml_strata.events != before;
}

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* The ranks of my job on this machine, from the launcher's list "0,1,5". */
static int find_local(void)
{
    opal_process_name_t job = *(const opal_process_name_t *)OMPI_PROC_MY_NAME;
    char *list = NULL, *at;
    int rc, n = 1;

    job.vpid = OPAL_VPID_WILDCARD;
    OPAL_MODEX_RECV_VALUE(rc, PML_STRATA_LOCAL_PEERS, &job, &list, PML_STRATA_STRING);
    if (rc != OPAL_SUCCESS)
        list = NULL;
    for (at = list; at && *at; at++)
        n += *at == ',';
    pml_strata.local_ranks = calloc((size_t)n + 1, sizeof(int));
    if (!pml_strata.local_ranks) {
        free(list);
        return STRATA_ERR_NOMEM;
    }
    pml_strata.n_local = 0;
    bool me = false;
    int mine = pml_strata_rank_of((const opal_process_name_t *)OMPI_PROC_MY_NAME);
    for (at = list; at && *at;) {
        job.vpid = (uint32_t)strtoul(at, &at, 10);
        int rank = pml_strata_rank_of(&job);
        if (rank >= 0)
            pml_strata.local_ranks[pml_strata.n_local++] = rank;
        me = me || rank == mine;
        at += *at == ',';
    }
    if (!me)
        pml_strata.local_ranks[pml_strata.n_local++] = mine;
    qsort(pml_strata.local_ranks, (size_t)pml_strata.n_local, sizeof(int), compare);
    free(list);
    return STRATA_OK;
}

int pml_strata_host_init(strata_host_t *host)
{
    const opal_process_name_t *me = (const opal_process_name_t *)OMPI_PROC_MY_NAME;
    char family[16];
    int rank, rc;

    pml_strata.jobid = me->jobid;
    pml_strata.place = pml_strata_job_place(me->jobid);
    pml_strata_job_family(family, sizeof family);
    rank = pml_strata_rank_of(me);
    if (rank < 0)
        return STRATA_ERR_RANK;
    rc = find_local();
    if (rc != STRATA_OK)
        return rc;
    rc = host_put(NULL, HOST_KEY, OPAL_PROC_MY_HOSTNAME, strlen(OPAL_PROC_MY_HOSTNAME));
    if (rc != STRATA_OK)
        return rc;
    snprintf(pml_strata.job_id, sizeof pml_strata.job_id, "openmpi.%u.%s", (unsigned)geteuid(), family);
    *host = (strata_host_t){.size = sizeof *host,
                            .rank = rank,
                            .n_ranks = STRATA_RANKS_OPEN,
                            .job_id = pml_strata.job_id,
                            .host_name = OPAL_PROC_MY_HOSTNAME,
                            .put = host_put,
                            .get = host_get,
                            .fence = host_fence,
                            .is_local = host_is_local,
                            .local_ranks = host_local_ranks,
                            .host_of = host_of,
                            .abort = host_abort,
                            .log = host_log,
                            .idle = host_idle,
                            .memory_watch = pml_strata_memory_watch};
    return STRATA_OK;
}

void pml_strata_host_fini(void)
{
    free(pml_strata.local_ranks);
    pml_strata.local_ranks = NULL;
}

/* The component: registration, selection, the module that Open MPI copies, start and end of Strata's context. */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/runtime/opal_progress.h"

#define QUIET 1000u /* empty polls that are not worth a thought */

struct pml_strata pml_strata;

/* No work per process: Strata looks a peer up when it is first spoken to. One process of each job that we meet is asked
 * whether it has Strata at all. */
static int add_procs(struct ompi_proc_t **procs, size_t n)
{
    char why[256];

    for (size_t i = 0; i < n; i++) {
        const opal_process_name_t *name = &procs[i]->super.proc_name;
        if ((i == 0 || name->jobid != procs[i - 1]->super.proc_name.jobid) &&
            !pml_strata_same_version(name, why, sizeof why))
            pml_strata_give_up(why);
    }
    return OMPI_SUCCESS;
}

static int del_procs(struct ompi_proc_t **procs, size_t n)
{
    (void)procs;
    (void)n;
    return OMPI_SUCCESS;
}

static int enable(bool on)
{
    (void)on;
    return OMPI_SUCCESS;
}

static int progress(void)
{
    int n = strata_progress(pml_strata.context);

    if (OPAL_LIKELY(n > 0)) {
        pml_strata.events++;
        pml_strata.empty = 0;
    } else if (opal_progress_yield_when_idle) {
        /* Open MPI yields after a round that found nothing. Strata does it in its place, since it knows what the last
         * yields brought; a round that found something is not followed by another. */
        strata_host_yield(pml_strata.context, ++pml_strata.empty);
        return 1;
    } else if (++pml_strata.empty > QUIET) {
        /* Open MPI waits by calling this in a loop that spins for ever unless it has been told to yield. */
        strata_host_pause(pml_strata.context, pml_strata.empty);
    }
    return n;
}

static int dump(struct ompi_communicator_t *comm, int verbose)
{
    uint64_t unexpected = 0, posted = 0;

    (void)verbose;
    strata_comm_queues(pml_strata_comm(comm), &unexpected, &posted);
    opal_output(0, "pml strata: communicator %s (%u): %lu unexpected messages, %lu posted receives", comm->c_name,
                (unsigned)ompi_comm_get_cid(comm), (unsigned long)unexpected, (unsigned long)posted);
    return OMPI_SUCCESS;
}

mca_pml_base_module_t pml_strata_module = {
    .pml_add_procs = add_procs,
    .pml_del_procs = del_procs,
    .pml_enable = enable,
    .pml_progress = progress,
    .pml_add_comm = pml_strata_add_comm,
    .pml_del_comm = pml_strata_del_comm,
    .pml_irecv_init = pml_strata_irecv_init,
    .pml_irecv = pml_strata_irecv,
    .pml_recv = pml_strata_recv,
    .pml_isend_init = pml_strata_isend_init,
    .pml_isend = pml_strata_isend,
    .pml_send = pml_strata_send,
    .pml_iprobe = pml_strata_iprobe,
    .pml_probe = pml_strata_probe,
    .pml_start = pml_strata_start,
    .pml_improbe = pml_strata_improbe,
    .pml_mprobe = pml_strata_mprobe,
    .pml_imrecv = pml_strata_imrecv,
    .pml_mrecv = pml_strata_mrecv,
    .pml_dump = dump,
    PML_STRATA_MODULE_EXTRA.pml_max_contextid = 1u << 30,
    .pml_max_tag = STRATA_TAG_MAX,
    .pml_flags = 0,
};

/* Open MPI loads what has the right name; internal structures differ between its minor versions. */
static bool version_fits(char *why, size_t size)
{
    static const char built[] = PML_STRATA_BUILT_FOR;
    char running[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;

    MPI_Get_library_version(running, &length);
    if (strncmp(running, built, strlen(built)) == 0)
        return true;
    running[strcspn(running, ",")] = 0;
    snprintf(why, size, "this plugin was built for %s%s, and %s is running; use the plugin folder of that version",
             built, "x", running);
    return false;
}

static int component_register(void)
{
    int rc = pml_strata_vars_register();

    pml_strata_pvars_register();
    return rc;
}

static int component_open(void)
{
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    pml_strata_vars_fini();
    return OMPI_SUCCESS;
}

static int context_init(bool threaded, char *why, size_t size)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_setting_t fixed[] = {{"rte", "host"}};
    strata_host_t host;
    int rc = pml_strata_host_init(&host);

    if (rc != STRATA_OK) {
        snprintf(why, size, "this process has no rank in Strata's space: %s", strata_strerror(rc));
        return rc;
    }
    config.thread_level = threaded ? STRATA_THREAD_MULTIPLE : STRATA_THREAD_SINGLE;
    config.host = &host;
    config.settings = fixed;
    config.n_settings = 1;
    config.command_line = pml_strata_vars_settings(&config.n_command_line);
    config.error_text = why;
    config.error_text_size = size;
    rc = strata_init(&config, &pml_strata.context);
    if (rc == STRATA_OK && pml_strata_publish_version() != STRATA_OK)
        return STRATA_ERR_SYSTEM;
    return rc;
}

/* Open MPI opens what it finds, and takes a PML that it does not know only when it is named. */
static bool wanted(bool *alone)
{
    const char *list = ompi_pml_base_framework.framework_selection;

    *alone = list && strcmp(list, "strata") == 0;
    return list && *list != '^' && strstr(list, "strata");
}

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    char why[1024] = "";
    bool alone;

    (void)progress_threads;
    *priority = 0;
    if (!wanted(&alone))
        return NULL;
    /* A session of 5.0 before MPI_Init: what comes later may have threads, and there is one context for all. */
    pml_strata.threaded = mpi_threads || ompi_mpi_state < OMPI_MPI_STATE_INIT_STARTED;
    if (!version_fits(why, sizeof why) || pml_strata_misspelt(why, sizeof why) ||
        context_init(pml_strata.threaded, why, sizeof why) != STRATA_OK || pml_strata_requests_init() != OPAL_SUCCESS) {
        if (alone)
            pml_strata_give_up(*why ? why : "out of memory");
        opal_output(0, "pml strata: not used: %s", *why ? why : "out of memory");
        if (pml_strata.context)
            strata_finalize(pml_strata.context);
        pml_strata.context = NULL;
        pml_strata_memory_stop();
        return NULL;
    }
    pml_strata_alloc_mem_start();
    *priority = 1;
    return &pml_strata_module;
}

static int component_finalize(void)
{
    int rc = STRATA_OK;

    pml_strata_alloc_mem_stop();
    if (pml_strata.context)
        rc = strata_finalize(pml_strata.context);
    pml_strata.context = NULL;
    pml_strata_memory_stop();
    pml_strata_requests_fini();
    pml_strata_host_fini();
    return pml_strata_error(rc);
}

__attribute__((visibility("default"))) pml_strata_component_t mca_pml_strata_component = {
    .pmlm_version = {PML_STRATA_COMPONENT_VERSION, .mca_component_name = "strata",
                     .mca_component_major_version = STRATA_VERSION_MAJOR,
                     .mca_component_minor_version = STRATA_VERSION_MINOR, .mca_component_release_version = 0,
                     .mca_open_component = component_open, .mca_close_component = component_close,
                     .mca_register_component_params = component_register},
    .pmlm_data = {.param_field = 0},
    .pmlm_init = component_init,
    .pmlm_finalize = component_finalize,
};

/* Performance variables: Strata's counters, and the lengths of a communicator's queues. */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"

/* Which of strata_counters' lines a variable adds up. */
struct wanted {
    const char *framework, *component, *name; /* component NULL: all of the framework */
    uint64_t sum;
};

static void sum_up(void *arg, const strata_counter_t *c)
{
    struct wanted *w = arg;

    if (strcmp(c->name, w->name) == 0 && strcmp(c->framework, w->framework) == 0 &&
        (!w->component || strcmp(c->component, w->component) == 0))
        w->sum += c->value;
}

static int read_counter(const struct mca_base_pvar_t *pvar, void *value, void *obj)
{
    struct wanted w = *(const struct wanted *)pvar->ctx;

    (void)obj;
    w.sum = 0;
    if (pml_strata.context)
        strata_counters(pml_strata.context, sum_up, &w);
    *(unsigned long long *)value = w.sum;
    return OMPI_SUCCESS;
}

static void add_bytes(void *arg, const strata_mem_line_t *line)
{
    if (!line->user)
        *(unsigned long long *)arg += line->bytes;
}

static int read_memory(const struct mca_base_pvar_t *pvar, void *value, void *obj)
{
    (void)pvar;
    (void)obj;
    *(unsigned long long *)value = 0;
    if (pml_strata.context)
        strata_mem_report(pml_strata.context, add_bytes, value);
    return OMPI_SUCCESS;
}

static int read_unexpected(const struct mca_base_pvar_t *pvar, void *value, void *obj)
{
    uint64_t n = 0;

    (void)pvar;
    strata_comm_queues(pml_strata_comm(obj), &n, NULL);
    *(unsigned *)value = (unsigned)n;
    return OMPI_SUCCESS;
}

static int read_posted(const struct mca_base_pvar_t *pvar, void *value, void *obj)
{
    uint64_t n = 0;

    (void)pvar;
    strata_comm_queues(pml_strata_comm(obj), NULL, &n);
    *(unsigned *)value = (unsigned)n;
    return OMPI_SUCCESS;
}

static int queue_notify(mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *obj, int *count)
{
    (void)pvar;
    (void)obj;
    if (event == MCA_BASE_PVAR_HANDLE_BIND)
        *count = 1;
    return OMPI_SUCCESS;
}

static void add_queue(const char *name, const char *help, mca_base_get_value_fn_t get)
{
    mca_base_component_pvar_register(&mca_pml_strata_component.pmlm_version, name, help, OPAL_INFO_LVL_4,
                                     MPI_T_PVAR_CLASS_SIZE, MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, MPI_T_BIND_MPI_COMM,
                                     MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL,
                                     queue_notify, NULL);
}

static void add_number(const char *name, const char *help, int class, mca_base_get_value_fn_t get,
                       const struct wanted *what)
{
    mca_base_component_pvar_register(&mca_pml_strata_component.pmlm_version, name, help, OPAL_INFO_LVL_4, class,
                                     MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MPI_T_BIND_NO_OBJECT,
                                     MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL, NULL,
                                     (void *)(uintptr_t)what);
}

static void add_counter(const char *name, const char *help, const struct wanted *what)
{
    add_number(name, help, MPI_T_PVAR_CLASS_COUNTER, read_counter, what);
}

/* A counter of a component that is installed. What each component of a framework has is one variable where only one of
 * them is in use at a time, and otherwise one for each; the sums over all transports have names of their own. What only
 * one component counts is left to its report: a variable costs half a kilobyte in each rank, whatever is in use. */
void pml_strata_pvars_add(void *arg, const struct st_info_counter *c)
{
    static const int classes[] = {[STRATA_COUNT] = MPI_T_PVAR_CLASS_COUNTER,
                                  [STRATA_LEVEL] = MPI_T_PVAR_CLASS_SIZE,
                                  [STRATA_PEAK] = MPI_T_PVAR_CLASS_HIGHWATERMARK};
    bool whole = strcmp(c->framework, "btl") != 0;
    char name[160], help[320];

    (void)arg;
    if (!c->common)
        return;
    snprintf(name, sizeof name, "%s_%s%s%s", c->framework, whole ? "" : c->component, whole ? "" : "_", c->name);
    snprintf(help, sizeof help, "%s (%s)", c->help, c->unit);
    if (whole && mca_base_pvar_find("ompi", "pml", "strata", name) >= 0)
        return;
    /* Open MPI keeps the pointer for the life of the process; the texts stand behind. */
    size_t framework = strlen(c->framework) + 1, component = strlen(c->component) + 1, size = strlen(c->name) + 1;
    struct wanted *w = malloc(sizeof *w + framework + component + size);
    if (!w)
        return;
    char *text = (char *)(w + 1);
    memcpy(text, c->framework, framework);
    memcpy(text + framework, c->component, component);
    memcpy(text + framework + component, c->name, size);
    *w = (struct wanted){text, whole ? NULL : text + framework, text + framework + component, 0};
    add_number(name, help, classes[c->kind], read_counter, w);
}

void pml_strata_pvars_register(void)
{
    static const struct wanted sent = {"pml", NULL, "messages_sent", 0},
                               received = {"pml", NULL, "messages_received", 0}, bytes = {"btl", NULL, "bytes_sent", 0},
                               got = {"btl", NULL, "bytes_got", 0}, calls = {"coll", NULL, "calls", 0},
                               registered = {"btl", NULL, "registered_bytes", 0};

    add_queue("unexpected_queue_length", "Messages of a communicator that have arrived and no receive has taken",
              read_unexpected);
    add_queue("posted_queue_length", "Receives of a communicator that wait for a message", read_posted);
    add_counter("messages_sent", "Messages sent", &sent);
    add_counter("messages_received", "Messages received", &received);
    add_counter("collectives", "Collectives begun by shared memory and by arrival", &calls);
    add_counter("bytes_sent", "Bytes that all transports have sent", &bytes);
    add_counter("bytes_got", "Bytes that all transports have fetched from peers' memory", &got);
    add_number("registered_memory", "Bytes of memory registered with transports now", MPI_T_PVAR_CLASS_SIZE,
               read_counter, &registered);
    add_number("memory", "Bytes of memory that Strata holds in this process now, its shared segment included",
               MPI_T_PVAR_CLASS_SIZE, read_memory, NULL);
}

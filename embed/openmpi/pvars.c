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

static void add_transport(const char *component, const char *counter, const char *what)
{
    struct wanted *w = malloc(sizeof *w);
    char name[96], help[128];

    if (!w)
        return;
    /* Open MPI keeps the pointer for the life of the process. */
    *w = (struct wanted){"btl", strdup(component), counter, 0};
    snprintf(name, sizeof name, "btl_%s_%s", component, counter);
    snprintf(help, sizeof help, "%s by the transport %s", what, component);
    if (w->component)
        add_counter(name, help, w);
}

/* A transport that is installed, known by its priority parameter: btl_NAME_bytes_sent, btl_NAME_bytes_got. */
void pml_strata_pvars_transport(const char *parameter)
{
    static const char prefix[] = "btl_", suffix[] = "_priority";
    const size_t around = sizeof prefix + sizeof suffix - 2;
    size_t n = strlen(parameter);
    char component[64];

    if (n <= around || n - around >= sizeof component || strncmp(parameter, prefix, sizeof prefix - 1) != 0 ||
        strcmp(parameter + n - (sizeof suffix - 1), suffix) != 0)
        return;
    snprintf(component, sizeof component, "%.*s", (int)(n - around), parameter + sizeof prefix - 1);
    add_transport(component, "bytes_sent", "Bytes sent");
    add_transport(component, "bytes_got", "Bytes fetched from peers' memory, which do not count as sent there,");
}

void pml_strata_pvars_register(void)
{
    static const struct wanted sent = {"pml", NULL, "messages_sent", 0},
                               received = {"pml", NULL, "messages_received", 0}, bytes = {"btl", NULL, "bytes_sent", 0},
                               got = {"btl", NULL, "bytes_got", 0}, registered = {"btl", NULL, "registered_bytes", 0};

    static const struct {
        const char *name, *help;
        int class;
        struct wanted what;
    } cache[] = {
        {"registrations_found",
         "Times that memory was registered already when it was needed",
         MPI_T_PVAR_CLASS_COUNTER,
         {"rcache", NULL, "hits", 0}},
        {"registrations_made",
         "Times that memory had to be registered",
         MPI_T_PVAR_CLASS_COUNTER,
         {"rcache", NULL, "misses", 0}},
        {"registrations_evicted",
         "Registrations undone to make room for others",
         MPI_T_PVAR_CLASS_COUNTER,
         {"rcache", NULL, "evictions", 0}},
        {"registrations_gone",
         "Registrations undone because their memory went away",
         MPI_T_PVAR_CLASS_COUNTER,
         {"rcache", NULL, "invalidations", 0}},
        {"registrations",
         "Registrations of user memory now",
         MPI_T_PVAR_CLASS_SIZE,
         {"rcache", NULL, "registrations", 0}},
        {"user_memory_registered",
         "Bytes of user memory registered now",
         MPI_T_PVAR_CLASS_SIZE,
         {"rcache", NULL, "registered_bytes", 0}},
        {"user_memory_registered_max",
         "Bytes of user memory registered at most so far",
         MPI_T_PVAR_CLASS_HIGHWATERMARK,
         {"rcache", NULL, "registered_bytes_max", 0}},
    };

    for (size_t i = 0; i < sizeof cache / sizeof *cache; i++)
        add_number(cache[i].name, cache[i].help, cache[i].class, read_counter, &cache[i].what);
    add_queue("unexpected_queue_length", "Messages of a communicator that have arrived and no receive has taken",
              read_unexpected);
    add_queue("posted_queue_length", "Receives of a communicator that wait for a message", read_posted);
    add_counter("messages_sent", "Messages sent", &sent);
    add_counter("messages_received", "Messages received", &received);
    add_counter("bytes_sent", "Bytes that all transports have sent", &bytes);
    add_counter("bytes_got", "Bytes that all transports have fetched from peers' memory", &got);
    add_number("registered_memory", "Bytes of memory registered with transports now", MPI_T_PVAR_CLASS_SIZE,
               read_counter, &registered);
    add_number("memory", "Bytes of memory that Strata holds in this process now, its shared segment included",
               MPI_T_PVAR_CLASS_SIZE, read_memory, NULL);
}

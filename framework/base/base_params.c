/* The parameters mca_base_*. What the numbers are when left at -1 is decided in framework/base/idle.c. */
#include "framework/base/base_params.h"

#include "framework/base/context.h"

static const char *const tune_choices[] = {"off", "facts", "online", NULL}; /* enum st_tune */
static const char *const report_choices[] = {"off", "text", "json", NULL};

#define AT(member) offsetof(struct st_base_config, member)

const struct st_param st_base_params[] = {
    {.name = "verbose",
     .type = ST_PARAM_INT,
     .offset = AT(verbose),
     .dflt = "1",
     .min = 0,
     .max = 3,
     .help = "Log lines shown: 0 errors, 1 and warnings, 2 and information, 3 and debugging.",
     .level = 1},
    {.name = "spin",
     .type = ST_PARAM_INT,
     .offset = AT(spin),
     .dflt = "-1",
     .min = -1,
     .max = 1e9,
     .unit = "polls",
     .help = "Polls without an event before a waiting thread begins to yield the processor; -1: many, or, when more "
             "ranks than processors share this machine, few while others want the processor.",
     .level = 3},
    {.name = "yield",
     .type = ST_PARAM_INT,
     .offset = AT(yield),
     .dflt = "-1",
     .min = -1,
     .max = 1e9,
     .unit = "yields",
     .help =
         "Yields without an event before a waiting thread sleeps; -1: chosen like mca_base_spin, by what sleeps and "
         "yields cost.",
     .level = 3},
    {.name = "sleep_max_us",
     .type = ST_PARAM_INT,
     .offset = AT(sleep_max_us),
     .dflt = "10000",
     .min = 1,
     .max = 1e6,
     .unit = "us",
     .help = "Longest sleep of a waiting thread before it polls again, even though nothing woke it.",
     .level = 5},
    {.name = "tune",
     .type = ST_PARAM_ENUM,
     .offset = AT(tune),
     .dflt = "facts",
     .help =
         "How the protocol of a long message is chosen where no parameter says: off: by fixed sizes; facts: by what "
         "transports measure of this machine when they connect; online: as facts, and then by the times of real "
         "messages, of which a few go the other way to compare.",
     .level = 3,
     .choices = tune_choices},
    {.name = "mem_spare",
     .type = ST_PARAM_SIZE,
     .offset = AT(mem_spare),
     .dflt = "4m",
     .max = 1e15,
     .unit = "bytes",
     .help = "Memory that programs got from an embedding MPI's MPI_Alloc_mem and gave back, kept registered for the "
             "next that ask for some; 0: none.",
     .level = 5},
    {.name = "channel_direct_min",
     .type = ST_PARAM_SIZE,
     .offset = AT(channel_direct_min),
     .dflt = "16k",
     .min = 4096,
     .max = 1e15,
     .unit = "bytes",
     .help = "Messages of channels from this length on may go from the sender's own memory straight to that of a "
             "receiver that waits for them, where that is found to be faster than copies.",
     .level = 5},
    {.name = "fence_after_failure_ms",
     .type = ST_PARAM_INT,
     .offset = AT(fence_after_failure_ms),
     .dflt = "30000",
     .min = 0,
     .max = 1e9,
     .unit = "ms",
     .help = "How long a fence, that of strata_finalize too, waits for the other ranks once one is known to have "
             "failed and "
             "the launcher does not end it, as Open MPI's mpirun --enable-recovery; then it is STRATA_ERR_PEER. 0: for "
             "ever.",
     .level = 5},
    {.name = "node",
     .type = ST_PARAM_STRING,
     .offset = AT(node),
     .dflt = "",
     .help =
         "For experiments: the ranks of a machine are divided into nodes of so many ranks, in their order, as if each "
         "node were a machine. 4: nodes of four; 3,5: one of three, then nodes of five. The same at all ranks.",
     .level = 7},
    {.name = "report_transports",
     .type = ST_PARAM_ENUM,
     .offset = AT(report_transports),
     .dflt = "off",
     .help = "At finalize each rank prints for every peer how it was reached, and the messages and bytes sent and "
             "received: as "
             "text or as one JSON object per line.",
     .level = 1,
     .choices = report_choices},
    {.name = "report_folder",
     .type = ST_PARAM_STRING,
     .offset = AT(report_folder),
     .dflt = "",
     .help =
         "Folder of strata-run's in which each rank leaves what it has sent, counted and holds, when it ends and when "
         "it is asked; strata-run sets it for the reports that it merges.",
     .level = 9},
    {.name = "account_memory",
     .type = ST_PARAM_BOOL,
     .offset = AT(account_memory),
     .dflt = "0",
     .help = "Measure what libraries take while Strata calls them, so that the memory report sets all memory of the "
             "process since strata_init against the kernel's figures. Costs some milliseconds at the start, and some "
             "microseconds for each connection.",
     .level = 5},
    {.name = "live",
     .type = ST_PARAM_BOOL,
     .offset = AT(live),
     .dflt = "1",
     .help = "Whether a rank of a job answers strata-info --live of its user: a thread that sleeps, and a socket.",
     .level = 5},
};

const size_t st_base_n_params = sizeof(st_base_params) / sizeof(st_base_params[0]);

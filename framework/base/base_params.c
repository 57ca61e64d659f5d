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
     .help = "Selection of the protocol of a long message where no parameter sets it. off: by fixed sizes; facts: by "
             "measurements of the transports when they connect; online: as facts, then by the times of real messages, "
             "a few of which use the other protocol for comparison.",
     .level = 3,
     .choices = tune_choices},
    {.name = "mem_spare",
     .type = ST_PARAM_SIZE,
     .offset = AT(mem_spare),
     .dflt = "4m",
     .max = 1e15,
     .unit = "bytes",
     .help = "Maximum memory that programs have freed by an embedding MPI's MPI_Free_mem and that stays registered for "
             "the next requests; 0: none.",
     .level = 5},
    {.name = "channel_direct_min",
     .type = ST_PARAM_SIZE,
     .offset = AT(channel_direct_min),
     .dflt = "16k",
     .min = 4096,
     .max = 1e15,
     .unit = "bytes",
     .help = "Messages of channels from this length on may be moved directly from the sender's memory to that of a "
             "waiting receiver, if measurements show this to be faster than copies.",
     .level = 5},
    {.name = "fence_after_failure_ms",
     .type = ST_PARAM_INT,
     .offset = AT(fence_after_failure_ms),
     .dflt = "30000",
     .min = 0,
     .max = 1e9,
     .unit = "ms",
     .help = "How long a fence, also that of strata_finalize, waits for the other ranks after the failure of one, if "
             "the launcher does not end the fence, as Open MPI's mpirun --enable-recovery; it then returns "
             "STRATA_ERR_PEER. 0: for ever.",
     .level = 5},
    {.name = "node",
     .type = ST_PARAM_STRING,
     .offset = AT(node),
     .dflt = "",
     .help =
         "For experiments: divides the ranks of a machine, in their order, into nodes, as if each node were a machine. "
         "4: nodes of four ranks; 3,5: one node of three, then nodes of five. The same at all ranks.",
     .level = 7},
    {.name = "report_transports",
     .type = ST_PARAM_ENUM,
     .offset = AT(report_transports),
     .dflt = "off",
     .help = "At finalize each rank prints for every peer the transports used, and the messages and bytes sent and "
             "received: as text or as one JSON object per line.",
     .level = 1,
     .choices = report_choices},
    {.name = "report_folder",
     .type = ST_PARAM_STRING,
     .offset = AT(report_folder),
     .dflt = "",
     .help =
         "Folder of strata-run in which each rank writes its traffic, counters and memory, at its end and on request; "
         "set by strata-run for the reports that it merges.",
     .level = 9},
    {.name = "account_memory",
     .type = ST_PARAM_BOOL,
     .offset = AT(account_memory),
     .dflt = "0",
     .help =
         "Measure the memory that libraries allocate while Strata calls them, so that the memory report compares all "
         "memory of the process since strata_init with the kernel's figures. Costs some milliseconds at the start, "
         "and some microseconds for each connection.",
     .level = 5},
    {.name = "live",
     .type = ST_PARAM_BOOL,
     .offset = AT(live),
     .dflt = "1",
     .help =
         "Whether a rank of a job answers strata-info --live of the same user; costs a sleeping thread and a socket.",
     .level = 5},
};

const size_t st_base_n_params = sizeof(st_base_params) / sizeof(st_base_params[0]);

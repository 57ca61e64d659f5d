/* The table of plots: the paper's figures with their numbers, and what is beyond the paper. */
#include "config.h"
#include "plots.h"

#define LATENCY(name, of)                                                                                              \
    {                                                                                                                  \
        .title = name, .test = of, .variant = "latency", .x = BY_SIZE                                                  \
    }
#define BANDWIDTH(name, of)                                                                                            \
    {                                                                                                                  \
        .title = name, .test = of, .variant = "bandwidth", .x = BY_SIZE, .rate = true                                  \
    }

const struct plot miba_plots[] = {
    {"figure02", "Figure 2: registration and deregistration of memory", {{.title = "by size", .test = "registration"}}},
    {"figure03", "Figure 3: completion queues", {{.title = "by entries", .test = "cq", .variant = "plain"}}},
    {"figure04", "Figure 4: queue pairs", {{.title = "by entries", .test = "qp"}}},
    {"figure05",
     "Figure 5: base configuration",
     {{.title = "(a) latency", .test = "latency"},
      {.title = "(b) bandwidth", .test = "bandwidth"},
      {.title = "(c) bandwidth both ways", .test = "both_ways"},
      {.title = "(d) bandwidth beside computation",
       .test = "cpu",
       .figure = "cpu_bandwidth",
       .x = BY_FIGURE,
       .by = "cpu_computing",
       .x_name = "fraction of the time that is computation"},
      {.title = "bandwidth by window", .test = "window", .rate = true}}},
    {"figure06",
     "Figure 6: address translation",
     {LATENCY("(a) scheme 1, latency", "translation_1"), BANDWIDTH("(b) scheme 1, bandwidth", "translation_1"),
      LATENCY("(c) scheme 2, latency", "translation_2"), BANDWIDTH("(d) scheme 2, bandwidth", "translation_2")}},
    {"figure07", "Figure 7: queue pairs, latency", {LATENCY("latency", "qps")}},
    {"figure08", "Figure 8: queue pairs, bandwidth", {BANDWIDTH("bandwidth", "qps")}},
    {"figure09",
     "Figure 9: data segments",
     {LATENCY("latency", "segments"), BANDWIDTH("bandwidth", "segments"),
      LATENCY("latency, segments of the receiver", "scatter")}},
    {"figure10", "Figure 10: MTU", {LATENCY("latency", "mtu"), BANDWIDTH("bandwidth", "mtu")}},
    {"figure11",
     "Figure 11: scatter and gather entries at most",
     {LATENCY("latency", "max_sge"), BANDWIDTH("bandwidth", "max_sge")}},
    {"figure12", "Figure 12: events against polling", {LATENCY("latency", "events"), BANDWIDTH("bandwidth", "events")}},
    {"figure13", "Figure 13: load at the adapter", {{.title = "bandwidth", .test = "load", .rate = true}}},
    {"beyond_steps",
     "Beyond the paper: where a cost sets in",
     {{.title = "buffers in turn", .test = "translation_1", .variant = "latency", .first_size = true},
      {.title = "queue pairs in turn", .test = "qps", .variant = "latency", .first_size = true},
      {.title = "segments", .test = "segments", .variant = "latency", .first_size = true},
      {.title = "bytes of the region", .test = "region"},
      {.title = "registered regions", .test = "registration_many"},
      {.title = "operations in flight", .test = "atomics"}}},
    {"beyond_posting",
     "Beyond the paper: posting",
     {{.title = "inline and copied", .test = "inline"},
      {.title = "messages of a completion", .test = "signalling"},
      {.title = "requests of a call", .test = "lists"},
      {.title = "immediate data", .test = "immediate", .variant = "latency"},
      {.title = "senders to one receiver", .test = "incast"}}},
};

unsigned miba_plots_count(void)
{
    return sizeof miba_plots / sizeof *miba_plots;
}

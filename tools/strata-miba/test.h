/* Contract of a test. The table of all tests is tests.c; a new one is its file and its line there. */
#ifndef MIBA_TEST_H
#define MIBA_TEST_H

#include <sched.h>
#include <sys/types.h>
#include "device.h"
#include "link.h"
#include "names.h"
#include "results.h"
#include "settings.h"
#include "traffic.h"

/* What a run has. Tests read all of it and write `why`, and results by results_add. */
struct miba {
    struct settings set;
    struct device dev;
    struct link *link;   /* to the other side */
    bool leads;          /* this side measures; the other does as it is told */
    unsigned processors; /* that this process may use */
    cpu_set_t permitted; /* the same, before a side is bound to one of them */
    int cpu, other_cpu;  /* that this side, and the other one on this machine, is bound to; -1: none */
    pid_t child;         /* the other side, when it is a child of this process; else 0 */
    struct miba_why why;
    struct results *results; /* the leading side's */
    /* Called outside of what is timed; anything but MIBA_OK ends the case. NULL: nothing. */
    enum miba_status (*between_samples)(void *arg);
    void *between_arg;
};

struct endpoint;

struct miba_test {
    const char *name;
    const char *paper;      /* where the paper has it: "Figure 4", or "beyond the paper" */
    const char *isolates;   /* for the help: the component that the test isolates, and how */
    const char *x_name;     /* parameter that varies: "size", "entries" */
    const uint64_t *values; /* its values, unless the command line has some */
    unsigned n_values;
    const uint64_t
        *sizes; /* bytes of messages where x is something else, unless the command line has some; else NULL */
    unsigned n_sizes;
    const char *const *variants; /* names of kinds, the last one NULL; NULL: there is one kind */
    unsigned ops, transports;    /* bits; 0: no data moves, and the other side takes no part */
    bool values_fixed;           /* --values is for other tests */
    /* Leads a case of a test in which the other side takes no part; NULL in tests that move data. */
    enum miba_status (*local)(struct miba *m, const struct miba_case *c);
    /* Tests that move data: what moves. Called on both sides, which build their endpoints by it, with the same result.
     * Anything but MIBA_OK, with a reason in m->why, leaves the case out. */
    enum miba_status (*shape)(struct miba *m, const struct miba_case *c, struct traffic *t);
    /* Leads, once both endpoints are connected; NULL: pattern_lead (pattern.h), which measures what the traffic's
     * pattern says. */
    enum miba_status (*lead)(struct miba *m, const struct miba_case *c, struct endpoint *e);
};

extern const struct miba_test *const miba_tests[];
unsigned miba_tests_count(void);
const struct miba_test *miba_test_of(const char *name); /* NULL: there is none */

#endif

/* The cases of strata-conformance: those of the test programs, under one name each. */
#ifndef CONFORMANCE_CASES_H
#define CONFORMANCE_CASES_H

#include <stdbool.h>
#include <stddef.h>

struct btl_case;
struct suite_case;
struct over_case;

struct conf_case {
    char name[120];                   /* "transport/am_sizes", "clients/draining", "messages/basic/..." */
    int ranks;                        /* it needs */
    int most;                         /* ranks it can have beside; those of a message case beyond `ranks` look on */
    bool processes;                   /* its ranks may be processes */
    bool multiple;                    /* it needs STRATA_THREAD_MULTIPLE */
    bool puts;                        /* it needs a transport that can put */
    bool quiet;                       /* it provokes errors */
    const struct btl_case *transport; /* one of these three */
    const struct over_case *client;
    const struct suite_case *message;
};

/* All cases, in the order in which they run: malloc'ed, *n of them. NULL: out of memory. */
struct conf_case *conf_cases(size_t *n);

#endif

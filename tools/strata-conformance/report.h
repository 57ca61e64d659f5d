/* What strata-conformance prints: a line for each case, and the sums. */
#ifndef CONFORMANCE_REPORT_H
#define CONFORMANCE_REPORT_H

#include "cases.h"

enum conf_result { CONF_PASSED, CONF_FAILED, CONF_LEFT_OUT, CONF_RESULTS };

struct report {
    bool json;
    bool silent;       /* of a rank that does not speak: only failures are printed */
    const char *ranks; /* "threads" or "4 processes" */
    unsigned n[CONF_RESULTS];
};

/* `transport`: over which a case of the contract ran, or NULL. `reason`: why it failed or was left out, or NULL. */
void report_case(struct report *r, const struct conf_case *c, const char *transport, enum conf_result result,
                 const char *reason);
/* Prints the sums; the program's exit status. */
int report_end(const struct report *r);
/* --list. */
void report_list(bool json, const struct conf_case *c);

#endif

/* A suite program is a table of cases and a name. verbs_main runs them by Check, each in a process of its own, leaves
 * out those that differences.h names for the kind of device under test, and prints one line for each and the totals. */
#ifndef VERBS_SUPPORT_CASES_H
#define VERBS_SUPPORT_CASES_H

#include <stddef.h>

struct verbs_case {
    const char *name;
    void (*run)(void);
};

#define CASE(function)                                                                                                 \
    {                                                                                                                  \
        .name = #function, .run = function                                                                             \
    }
#define VERBS_MAIN(program, table)                                                                                     \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        return verbs_main(program, table, sizeof table / sizeof *table);                                               \
    }

int repetitions(int n); /* of a case that looks for a race: n, or as many per cent of it as VERBS_REPETITIONS says */

/* 0: all passed; 1: some failed; 77: nothing could be run (no device). */
int verbs_main(const char *program, const struct verbs_case *cases, size_t n);

#endif

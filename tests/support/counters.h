/* Value of one counter of a context. A name that no counter has ends the test: it would be zero for ever. */
#ifndef TESTS_SUPPORT_COUNTERS_H
#define TESTS_SUPPORT_COUNTERS_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/strata.h>

struct counter_wanted {
    const char *framework, *component, *name;
    uint64_t value;
    int found;
};

static inline void counter_take(void *arg, const strata_counter_t *c)
{
    struct counter_wanted *w = arg;

    if (strcmp(c->framework, w->framework) != 0 || strcmp(c->name, w->name) != 0 ||
        (w->component && strcmp(c->component, w->component) != 0))
        return;
    w->value += c->value;
    w->found++;
}

/* Of a component, or the sum over all components of the framework that have such a counter if it is NULL. */
static inline unsigned long long counted(strata_t *s, const char *framework, const char *component, const char *name)
{
    struct counter_wanted w = {framework, component, name, 0, 0};
    int rc = strata_counters(s, counter_take, &w);

    if (rc != STRATA_OK || w.found == 0) {
        fprintf(stderr, "FAILED: counter %s of %s/%s: %s\n", name, framework, component ? component : "*",
                rc != STRATA_OK ? strata_strerror(rc) : "there is none");
        exit(2);
    }
    return w.value;
}

#endif

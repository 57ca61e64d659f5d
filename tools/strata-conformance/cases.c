/* Collects the cases. */
#include "cases.h"
#include "support/btl_suite.h"
#include "support/over_suite.h"

#include <limits.h>

/* CLIENT_SUITES is made by config/discover.sh: SUITE(clients) SUITE(notify) ... */
#define SUITE(name) extern const struct over_suite over_##name;
CLIENT_SUITES
#undef SUITE
#define SUITE(name) &over_##name,
static const struct over_suite *const client_suites[] = {CLIENT_SUITES};
#undef SUITE

static size_t count_all(void)
{
    size_t n = 0;

    while (btl_case_at(n))
        n++;
    for (size_t s = 0; s < sizeof client_suites / sizeof *client_suites; s++)
        n += (size_t)client_suites[s]->n;
    for (size_t g = 0; suite_all[g]; g++)
        n += suite_all[g]->n;
    return n;
}

static void add_transport(struct conf_case *to, const struct btl_case *c)
{
    *to = (struct conf_case){.ranks = c->ranks, .most = c->ranks, .processes = true, .transport = c};
    snprintf(to->name, sizeof to->name, "transport/%s", c->name);
}

static void add_client(struct conf_case *to, const struct over_suite *suite, const struct over_case *c)
{
    *to = (struct conf_case){.ranks = c->ranks,
                             .most = c->flags & OVER_MORE ? OVER_MOST : c->ranks,
                             .processes = c->flags & OVER_PROCESSES,
                             .multiple = c->level == STRATA_THREAD_MULTIPLE,
                             .puts = suite->flags & OVER_PUTS,
                             .quiet = c->flags & OVER_QUIET,
                             .client = c};
    snprintf(to->name, sizeof to->name, "%s/%s", suite->name, c->name);
}

static void add_message(struct conf_case *to, const char *group, const struct suite_case *c)
{
    static const char prefix[] = "suite_";

    if (!strncmp(group, prefix, sizeof prefix - 1))
        group += sizeof prefix - 1;
    *to = (struct conf_case){
        .ranks = c->ranks, .most = INT_MAX, .processes = true, .multiple = c->flags & SUITE_MULTIPLE, .message = c};
    snprintf(to->name, sizeof to->name, "messages/%s/%s", group, c->name);
}

struct conf_case *conf_cases(size_t *n)
{
    struct conf_case *all = calloc(count_all(), sizeof *all);
    size_t at = 0;

    if (!all)
        return NULL;
    /* The contract first: it connects and disconnects by itself, below the worker. */
    for (size_t i = 0; btl_case_at(i); i++)
        add_transport(&all[at++], btl_case_at(i));
    for (size_t s = 0; s < sizeof client_suites / sizeof *client_suites; s++)
        for (int i = 0; i < client_suites[s]->n; i++)
            add_client(&all[at++], client_suites[s], &client_suites[s]->cases[i]);
    for (size_t g = 0; suite_all[g]; g++)
        for (size_t i = 0; i < suite_all[g]->n; i++)
            add_message(&all[at++], suite_all[g]->name, &suite_all[g]->cases[i]);
    *n = at;
    return all;
}

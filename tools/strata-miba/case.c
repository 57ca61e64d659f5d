/* Cases of a test: which there are, and their names. */
#include "config.h"
#include "case.h"

#include <stdio.h>
#include "test.h"

const char *case_variant(const struct miba_case *c)
{
    return c->test->variants ? c->test->variants[c->variant] : "";
}

void case_text(const struct miba_case *c, char *text, size_t size)
{
    const char *variant = case_variant(c);
    char of[32] = "";

    if (c->size)
        snprintf(of, sizeof of, " of %u bytes", c->size);
    snprintf(text, size, "%s%s%s%s%s%s%s%s %s %llu", c->test->name, c->op ? " " : "", c->op ? miba_op_name(c->op) : "",
             c->op ? " " : "", c->op ? miba_transport_name(c->transport) : "", *variant ? " " : "", variant, of,
             c->test->x_name, (unsigned long long)c->x);
}

static int visit_values(struct miba_case c, const struct settings *set,
                        int (*visit)(void *arg, const struct miba_case *c), void *arg)
{
    const bool own = set->n_values > 0 && !c.test->values_fixed;
    const uint64_t *values = own ? set->values : c.test->values;
    const unsigned n = own ? set->n_values : c.test->n_values;

    for (unsigned i = 0; i < n; i++) {
        c.x = values[i];
        const int stop = visit(arg, &c);
        if (stop)
            return stop;
    }
    return 0;
}

static int visit_variants(struct miba_case c, const struct settings *set,
                          int (*visit)(void *arg, const struct miba_case *c), void *arg)
{
    const struct miba_test *t = c.test;
    const bool asked = set->n_sizes > 0;
    unsigned n = asked ? set->n_sizes : c.transport == RC ? t->n_sizes : 1;

    if (!t->sizes)
        n = 1;
    for (c.variant = 0; c.variant == 0 || (t->variants && t->variants[c.variant]); c.variant++)
        for (unsigned i = 0; i < n; i++) {
            c.size = t->sizes ? (uint32_t)(asked ? set->sizes : t->sizes)[i] : 0;
            const int stop = visit_values(c, set, visit, arg);
            if (stop)
                return stop;
        }
    return 0;
}

int cases_visit(const struct miba_test *test, const struct settings *set,
                int (*visit)(void *arg, const struct miba_case *c), void *arg)
{
    if (test->ops == 0)
        return visit_variants((struct miba_case){.test = test}, set, visit, arg);
    for (int op = 1; op < OPS; op++)
        for (int t = 1; t < TRANSPORTS; t++) {
            const struct miba_case c = {.test = test, .op = (enum miba_op)op, .transport = (enum miba_transport)t};
            if (!(test->ops & set->ops & BIT(op)) || !(test->transports & set->transports & BIT(t)) ||
                !miba_op_on(c.op, c.transport))
                continue;
            const int stop = visit_variants(c, set, visit, arg);
            if (stop)
                return stop;
        }
    return 0;
}

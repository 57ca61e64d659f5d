/* Conformance of message semantics over every BTL that strata-info finds, as it comes. btl_shuffle has tests of its
 * own. */
/* starts first */
#include "support/found.h"
#include "support/matrix.h"
#include "support/turns.h"

static struct variant variants[16];
static char settings[16][80], names[16][32];
static int n_variants;

static void add(const char *name)
{
    if (!strcmp(name, "shuffle") || n_variants == 16)
        return;
    bool self = !strcmp(name, "self");
    snprintf(settings[n_variants], sizeof settings[0], "btl=%s%s", name, self ? "" : ",self");
    snprintf(names[n_variants], sizeof names[0], "%s", name);
    variants[n_variants] =
        (struct variant){.name = names[n_variants], .settings = settings[n_variants], .max_ranks = self ? 1 : 0};
    n_variants++;
}

/* In the short form slow cases run over the first transport between ranks only. Under a sanitizer each case runs over
 * one of these transports, by the seed. */
static void add_cases(void)
{
    unsigned long between = 0, of_them = 0;

    for (int i = 0; i < n_variants; i++)
        between += !variants[i].max_ranks;
    for (int i = 0; i < n_variants; i++) {
        struct variant *v = &variants[i];

        v->quick_only = of_them > 0 && !test_turns() && test_form(true, false);
        if (v->max_ranks || !test_turns())
            matrix_add(v);
        else
            matrix_add_turn(v, (of_them + test_seed(0)) % between, between);
        of_them += !v->max_ranks;
    }
}

int main(void)
{
    test_form_quick();
    found_btls(add);
    CHECK(n_variants > 0);
    add_cases();
    return matrix_main("conformance");
}

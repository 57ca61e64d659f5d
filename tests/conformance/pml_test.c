/* Conformance of message semantics over every BTL that strata-info finds, as it comes. btl_shuffle has tests of its
 * own. */
/* starts first */
#include "support/found.h"
#include "support/matrix.h"

static struct variant variants[16];
static char settings[16][80], names[16][32];
static int n_variants;
static bool slow_ones_have_run; /* over one transport, as is enough for the short form */

static void add(const char *name)
{
    if (!strcmp(name, "shuffle") || n_variants == 16)
        return;
    bool self = !strcmp(name, "self");
    snprintf(settings[n_variants], sizeof settings[0], "btl=%s%s", name, self ? "" : ",self");
    snprintf(names[n_variants], sizeof names[0], "%s", name);
    variants[n_variants] = (struct variant){.name = names[n_variants],
                                            .settings = settings[n_variants],
                                            .max_ranks = self ? 1 : 0,
                                            .quick_only = slow_ones_have_run && test_form(true, false)};
    slow_ones_have_run |= !self;
    matrix_add(&variants[n_variants++]);
}

int main(void)
{
    test_form_quick();
    found_btls(add);
    CHECK(n_variants > 0);
    return matrix_main("conformance");
}

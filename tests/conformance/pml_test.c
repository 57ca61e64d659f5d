/* Conformance of message semantics over every BTL that strata-info finds, as it comes. btl_shuffle has tests of its
 * own. */
#include "support/found.h"
#include "support/matrix.h"

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
    variants[n_variants] = (struct variant){names[n_variants], settings[n_variants], self ? 1 : 0, false};
    matrix_add(&variants[n_variants++]);
}

int main(void)
{
    found_btls(add);
    CHECK(n_variants > 0);
    return matrix_main("conformance");
}

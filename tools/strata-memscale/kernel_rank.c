/* One rank of a job of strata-memscale srq: `kernel NAME CLASS FOLDER`. Rank 0 leaves FOLDER/kernel.json. */
#define _GNU_SOURCE 1
#include "kernel.h"
#include "memscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool leave(const struct kernel *k, const char *folder)
{
    char path[4200];
    json_t *j = json_pack("{s:f, s:b}", "seconds", k->seconds, "right", k->right);

    snprintf(path, sizeof path, "%s/kernel.json", folder);
    bool well = json_dump_file(j, path, JSON_COMPACT) == 0;
    if (!well)
        fprintf(stderr, "strata-memscale: %s cannot be written\n", path);
    json_decref(j);
    return well;
}

int kernel_run(int argc, char **argv)
{
    const struct kernel_row *row = argc == 4 ? kernel_named(argv[1]) : NULL;
    struct kernel k = {.size = argc == 4 ? argv[2][0] : 'S'};
    strata_t *s;

    if (!row || !strchr("SWA", k.size))
        return EXIT_USER;
    if (strata_init(NULL, &s) != STRATA_OK)
        return EXIT_FAILURE;
    k.world = strata_world(s);
    k.rank = strata_rank(s);
    k.n = strata_size(s);
    row->run(&k);
    bool well = k.rank > 0 || leave(&k, argv[3]);
    return strata_finalize(s) == STRATA_OK && well ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* strata-memscale: memory, start and latency as the number of ranks grows. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>

/* Whether the machine holds the job; says why not. */
static bool holds(const struct plan *p, const json_t *all, const struct config *c, enum pattern pattern, int n)
{
    const double need = estimate_bytes(all, c, pattern, n), room = estimate_room();

    if (c->transport->softhca && n > SOFTHCA_RANKS) {
        fprintf(stderr, "strata-memscale: %s with %d ranks is refused: softhca holds %d processes\n", c->name, n,
                SOFTHCA_RANKS);
        return false;
    }
    if (p->force || p->launcher || need <= room)
        return true;
    fprintf(stderr,
            "strata-memscale: %s, %s with %d ranks is refused: it needs about %.1f GiB, and %.1f GiB of the "
            "available memory may be used, enough for %d; --force tries it\n",
            c->name, pattern_names[pattern], n, need / (1 << 30), room / (1 << 30), estimate_most(all, c, pattern));
    return false;
}

struct progress {
    size_t done, all;
    double work, work_done; /* sum of ranks: jobs take time by their number */
    uint64_t begin;
};

static void tell(const struct progress *at, const struct config *c, enum pattern pattern, int n)
{
    double spent = (double)(st_now_ns() - at->begin) / 1e9;

    fprintf(stderr, "strata-memscale: %zu of %zu: %s, %s, %d ranks", at->done + 1, at->all, c->name,
            pattern_names[pattern], n);
    if (at->work_done > 0)
        fprintf(stderr, "; about %.0f s left", spent / at->work_done * (at->work - at->work_done));
    fputc('\n', stderr);
}

/* False: the job failed. *kept: its measurement, if there is one, could be recorded. */
static bool measure(const struct plan *p, json_t *all, const struct config *c, enum pattern pattern, int n, bool *kept)
{
    char why[4300] = "";
    json_t *one = job_run(p, c, pattern, n, why, sizeof why);

    *kept = true;
    if (!one && launch_ended())
        return false;
    if (!one) {
        fprintf(stderr, "strata-memscale: %s, %s with %d ranks: %s\n", c->name, pattern_names[pattern], n, why);
        return false;
    }
    *kept = results_add(all, p->folder, one);
    json_decref(one);
    return true;
}

static bool measure_all(const struct plan *p, json_t *all)
{
    const size_t each = p->n_configs * p->n_patterns;
    struct progress at = {.all = p->n_ranks * each, .begin = st_now_ns()};
    bool well = true, kept = true;

    for (size_t i = 0; i < p->n_ranks; i++)
        at.work += p->ranks[i] * (double)each;
    for (size_t i = 0; i < at.all && kept && !launch_ended(); i++, at.done++) {
        const int n = p->ranks[i / each];
        const struct config *c = &p->configs[i % each / p->n_patterns];
        const enum pattern pattern = p->patterns[i % p->n_patterns];
        if (results_has(all, c, pattern, n)) {
            at.work -= n;
            continue;
        }
        tell(&at, c, pattern, n);
        if (!holds(p, all, c, pattern, n)) {
            well = false;
            at.work -= n;
            continue;
        }
        well &= measure(p, all, c, pattern, n, &kept);
        at.work_done += n;
    }
    return well && kept;
}

int main(int argc, char **argv)
{
    static struct plan p;

    if (argc > 1 && strcmp(argv[1], "rank") == 0)
        return rank_run(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "kernel") == 0)
        return kernel_run(argc - 1, argv + 1);
    launch_prepare();
    if (argc > 1 && strcmp(argv[1], "srq") == 0)
        return srq_run(argc - 1, argv + 1);
    options_read(&p, argc, argv);
    json_t *all = results_load(p.folder);
    if (p.estimate) {
        estimates_print(&p, all);
        json_decref(all);
        return EXIT_SUCCESS;
    }
    bool well = measure_all(&p, all);
    if (!launch_ended()) {
        well &= tables_write(all, p.folder);
        well &= figures_write(all, p.folder);
        if (p.model)
            well &= model_write(all, p.folder);
    }
    json_decref(all);
    return launch_exit(well);
}

/* Figures 3 to 6 of the paper by gnuplot, as SVG and PNG: memory of a process for each pattern, and the latency; beside
 * them what the kernel holds, and the times of the start and of first messages. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static const struct figure {
    const char *name, *title, *y, *pattern, *group, *value;
    double scale;
} figures[] = {
    {"hello", "Memory, nobody speaks", "private MB a process", "hello", "mean", "private", 1e-6},
    {"pairwise", "Memory, neighbours speak", "private MB a process", "pairwise", "mean", "private", 1e-6},
    {"alltoall", "Memory, all speak to all", "private MB a process", "alltoall", "mean", "private", 1e-6},
    {"tables", "Page tables, all speak to all", "MB a process", "alltoall", "mean", "page_tables", 1e-6},
    {"device", "Device mappings, proportional, all speak to all", "MB a process", "alltoall", "mean", "device_share",
     1e-6},
    {"start", "Start of the library", "ms (mean of ranks)", "hello", "mean", "init_us", 1e-3},
    {"first", "First message to a peer, all at a time", "ms (mean of ranks)", "pairwise", "mean", "first_us", 1e-3},
    {"latency", "Zero-byte latency, one pair active, all connected", "us (quartiles)", "alltoall", "latency_us",
     "median", 1},
    {"latency-one", "Zero-byte latency, one pair active, one peer connected", "us (quartiles)", "pairwise",
     "latency_us", "median", 1},
    {"latency-all", "Zero-byte latency, all pairs active, all connected", "us (quartiles)", "alltoall", "all_pairs_us",
     "median", 1},
};

static double of(const struct figure *f, const json_t *one, const char *name)
{
    return json_number_value(json_object_get(json_object_get(one, f->group), name)) * f->scale;
}

/* A time below 0 is none. */
static bool belongs(const struct figure *f, const json_t *one)
{
    return strcmp(json_string_value(json_object_get(one, "pattern")), f->pattern) == 0 &&
           json_object_get(one, f->group) && of(f, one, f->value) >= 0;
}

static long long ranks_of(const json_t *one)
{
    return (long long)json_integer_value(json_object_get(one, "ranks"));
}

/* The point of the same configuration as `first` with the least number of ranks above `ranks`; NULL: there is none. */
static const json_t *next_point(const struct figure *f, const json_t *all, const json_t *first, long long ranks)
{
    const json_t *next = NULL, *one;
    size_t i;

    json_array_foreach(all, i, one)
    {
        if (ranks_of(one) > ranks && (!next || ranks_of(one) < ranks_of(next)) && belongs(f, one) &&
            results_match(first, one))
            next = one;
    }
    return next;
}

/* A block of points for each configuration, by their ranks, and its part of the plot command. */
static unsigned write_points(FILE *data, FILE *script, const struct figure *f, const json_t *all)
{
    const bool bars = strcmp(f->value, "median") == 0;
    const json_t *one, *other;
    unsigned lines = 0;
    size_t i, k;

    json_array_foreach(all, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "config"));
        bool known = !belongs(f, one);
        for (k = 0; k < i && !known; k++) {
            other = json_array_get(all, k);
            known = belongs(f, other) && results_match(one, other);
        }
        if (known)
            continue;
        fprintf(data, "%s# %s\n", lines ? "\n\n" : "", name);
        for (other = next_point(f, all, one, 0); other; other = next_point(f, all, one, ranks_of(other))) {
            double v = of(f, other, f->value);
            fprintf(data, "%lld %.6g %.6g %.6g\n", ranks_of(other), v, bars ? of(f, other, "q1") : v,
                    bars ? of(f, other, "q3") : v);
        }
        fprintf(script, "%s'%s.dat' index %u using 1:2:3:4 with yerrorlines title '%s' noenhanced",
                lines ? ", \\\n     " : "plot ", f->name, lines, name);
        lines++;
    }
    fputc('\n', script);
    return lines;
}

static bool draw(const char *folder, const char *name)
{
    char script[64];
    char *const argv[] = {(char *)"gnuplot", script, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int how = 0;

    snprintf(script, sizeof script, "%s.gp", name);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    const int error = posix_spawnp(&child, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return false;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

static FILE *open_file(const char *folder, const char *name, const char *end)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    return fopen(path, "we");
}

/* False: the files cannot be written. *lines: 0 when nothing belongs there. */
static bool write_files(const struct figure *f, const json_t *all, const char *folder, unsigned *lines)
{
    FILE *data = open_file(folder, f->name, "dat"), *script = open_file(folder, f->name, "gp");
    bool well = data && script;

    if (well) {
        fprintf(script, "set title '%s'\nset xlabel 'ranks'\nset ylabel '%s'\nset key outside\nset yrange [0:*]\n",
                f->title, f->y);
        fprintf(script, "set terminal svg size 900,600 background 'white'\nset output '%s.svg'\n", f->name);
        *lines = write_points(data, script, f, all);
        fprintf(script, "set terminal png size 900,600\nset output '%s.png'\nreplot\n", f->name);
    }
    if (data && fclose(data) != 0)
        well = false;
    if (script && fclose(script) != 0)
        well = false;
    if (!well)
        fprintf(stderr, "strata-memscale: figure %s in %s cannot be written: %s\n", f->name, folder, strerror(errno));
    return well;
}

bool figure_draw(const char *folder, const char *name)
{
    bool well = draw(folder, name);

    if (well)
        printf("%s/%s.svg %s/%s.png\n", folder, name, folder, name);
    else
        fprintf(stderr, "strata-memscale: %s/%s.gp is not drawn: gnuplot is missing or failed (Debian: gnuplot-nox)\n",
                folder, name);
    return well;
}

bool figures_write(const json_t *all, const char *folder)
{
    bool well = true;

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        unsigned lines = 0;
        if (!write_files(&figures[i], all, folder, &lines))
            well = false;
        else if (lines)
            (void)figure_draw(folder, figures[i].name);
    }
    return well;
}

/* One job: what its ranks left, as one measurement. */
#define _GNU_SOURCE 1
#include "config.h"
#include "meeting.h"
#include "memscale.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Adds the numbers of `from` to sums and maxima, by name. */
static void add_all(json_t *sum, json_t *most, const json_t *from)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)from, name, value)
    {
        double v = json_number_value(value), m = json_number_value(json_object_get(most, name));
        json_object_set_new(sum, name, json_real(json_number_value(json_object_get(sum, name)) + v));
        json_object_set_new(most, name, json_real(v > m ? v : m));
    }
}

static void divide(json_t *sum, int n)
{
    const char *name;
    json_t *value;

    json_object_foreach(sum, name, value) json_real_set(value, json_real_value(value) / n);
}

/* A time of all ranks that have one: a rank that sent to nobody has no time of a first message. */
struct times {
    const char *name;
    double sum, most;
    int n;
};

static void times_add(struct times *t, const json_t *rank)
{
    const json_t *value = json_object_get(rank, t->name);
    const double us = json_number_value(value);

    if (!value || us < 0)
        return;
    t->sum += us;
    t->most = us > t->most ? us : t->most;
    t->n++;
}

/* -1: no rank has one. */
static void times_put(const struct times *t, json_t *mean, json_t *most)
{
    json_object_set_new(mean, t->name, json_real(t->n ? t->sum / t->n : -1));
    json_object_set_new(most, t->name, json_real(t->n ? t->most : -1));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median and quartiles of the batches of all ranks that have some. */
static void add_latency(json_t *one, const char *name, const json_t *us)
{
    size_t n = json_array_size(us);
    double *v = n ? malloc(n * sizeof *v) : NULL;

    if (!v)
        return;
    for (size_t i = 0; i < n; i++)
        v[i] = json_number_value(json_array_get(us, i));
    qsort(v, n, sizeof *v, by_value);
    json_object_set_new(
        one, name,
        json_pack("{s:f, s:f, s:f, s:i}", "median", v[n / 2], "q1", v[n / 4], "q3", v[3 * n / 4], "samples", (int)n));
    free(v);
}

/* Compiler, flags and libraries of this build (config/build_info.m4). */
static json_t *versions(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "compiler", ST_BUILD_COMPILER, "flags", ST_BUILD_FLAGS, "PMIx",
                     ST_BUILD_PMIX, "hwloc", ST_BUILD_HWLOC, "libibverbs", ST_BUILD_VERBS, "Open MPI",
                     ST_BUILD_OPENMPI);
}

/* The configuration as it was given, and what the figures depend on beside it. */
static json_t *about(const struct config *c, enum pattern pattern, int n)
{
    struct utsname u;
    json_t *set = json_object();

    uname(&u);
    for (size_t i = 0; i < c->n; i++)
        json_object_set_new(set, c->set[i].name, json_string(c->set[i].value));
    return json_pack("{s:s, s:s, s:o, s:s, s:i, s:i, s:s, s:s, s:s, s:I, s:o}", "config", c->name, "transport",
                     c->transport->name, "parameters", set, "pattern", pattern_names[pattern], "ranks", n, "world",
                     c->world ? c->world : n, "strata", PACKAGE_VERSION, "kernel_release", u.release, "machine",
                     u.machine, "processors", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "versions", versions());
}

static json_t *job_gather(const struct config *c, enum pattern pattern, int n, const char *folder, char *why,
                          size_t size)
{
    json_t *one = about(c, pattern, n), *mean = json_object(), *most = json_object(), *ours = json_object(),
           *ours_most = json_object(), *one_pair = json_array(), *all_pairs = json_array();
    struct times init = {.name = "init_us"}, first = {.name = "first_us"};

    for (int i = 0; i < n; i++) {
        char path[4200];
        snprintf(path, sizeof path, "%s/rank.%d.json", folder, i);
        json_t *r = json_load_file(path, 0, NULL);
        if (!r) {
            snprintf(why, size, "rank %d left no figures", i);
            json_decref(one);
            one = NULL;
            break;
        }
        add_all(mean, most, json_object_get(r, "kernel"));
        add_all(ours, ours_most, json_object_get(r, "ours"));
        times_add(&init, r);
        times_add(&first, r);
        json_array_extend(one_pair, json_object_get(r, "latency_us"));
        json_array_extend(all_pairs, json_object_get(r, "all_pairs_us"));
        json_object_set(one, "library", json_object_get(r, "library"));
        if (json_object_size(json_object_get(r, "configuration")))
            json_object_set(one, "configuration", json_object_get(r, "configuration"));
        json_decref(r);
    }
    divide(mean, n);
    divide(ours, n);
    times_put(&init, mean, most);
    times_put(&first, mean, most);
    if (one) {
        json_object_update_new(one, json_pack("{s:O, s:O, s:O, s:O}", "mean", mean, "largest", most, "ours", ours,
                                              "ours_largest", ours_most));
        add_latency(one, "latency_us", one_pair);
        add_latency(one, "all_pairs_us", all_pairs);
    }
    json_decref(one_pair);
    json_decref(all_pairs);
    json_decref(mean);
    json_decref(most);
    json_decref(ours);
    json_decref(ours_most);
    return one;
}

/* Removes the folder and the files that the ranks have left there. */
static void drop(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *entry;
    char path[4400];

    while (d && (entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            (void)unlink(path);
    }
    if (d)
        closedir(d);
    (void)rmdir(folder);
}

json_t *job_run(const struct plan *p, const struct config *c, enum pattern pattern, int n, char *why, size_t why_size)
{
    char folder[4096];
    json_t *one = NULL;

    if (!launch_folder(p, folder, sizeof folder)) {
        snprintf(why, why_size, "%s: %s", folder, strerror(errno));
        return NULL;
    }
    char world[16], count[16];
    snprintf(world, sizeof world, "%d", c->world);
    snprintf(count, sizeof count, "%d", n);
    const char *const what[] = {"rank",
                                pattern_names[pattern],
                                folder,
                                c->world ? world : p->launcher ? "fence" : NULL,
                                c->world ? count : NULL,
                                NULL};
    const char *launcher = config_launcher(c);
    int status = 0;
    if (!meeting_create(folder))
        snprintf(why, why_size, "%s/meeting: %s", folder, strerror(errno));
    else if ((status = launch_job(c, n, p, what)) < 0)
        snprintf(why, why_size, "%s was not started: %s", launcher, strerror(errno));
    else if (status != 0)
        snprintf(why, why_size, "%s ended with status %d", launcher, status);
    else
        one = job_gather(c, pattern, n, folder, why, why_size);
    if (one)
        json_object_set_new(one, "launcher", json_string(launcher));
    drop(folder);
    return one;
}

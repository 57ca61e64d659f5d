/* What a job will need: refused beforehand where the machine does not hold it. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <stdio.h>
#include <string.h>

/* Bytes of one rank in a measurement: its own pages and tables, and its part of the device's. Not PSS, which falls
 * where more ranks share the same libraries. */
static double rank_bytes(const json_t *one)
{
    const json_t *m = json_object_get(one, "mean");

    return json_number_value(json_object_get(m, "private")) + json_number_value(json_object_get(m, "page_tables")) +
           json_number_value(json_object_get(m, "device_share"));
}

/* Before anything is measured: a process, and for each connected peer what docs/design/btl_openib.md counts. */
static double guess(const struct config *c, enum pattern pattern, int n)
{
    const bool softhca = c->transport->softhca;
    double peers = pattern == HELLO ? 0 : pattern == PAIRWISE ? 1 : n - 1, peer = softhca ? 110e3 : 8e3;

    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->set[i].name, "btl_openib_receive_queues") == 0 && c->set[i].value[0] == 'P')
            peer = 900e3;
    return (softhca ? 4e6 : 3e6) + peers * peer;
}

/* A line through the two largest measurements of fewer ranks; one measurement gives no slope. */
double estimate_bytes(const json_t *all, const struct config *c, enum pattern pattern, int n)
{
    double x[2] = {0, 0}, y[2] = {0, 0};
    const json_t *one;
    size_t i;

    json_array_foreach(all, i, one)
    {
        double ranks = json_number_value(json_object_get(one, "ranks"));
        if (ranks >= n || !results_has(all, c, pattern, (int)ranks) ||
            strcmp(json_string_value(json_object_get(one, "config")), c->name) != 0 ||
            strcmp(json_string_value(json_object_get(one, "pattern")), pattern_names[pattern]) != 0)
            continue;
        int k = ranks > x[0] ? 0 : ranks < x[0] && ranks > x[1] ? 1 : -1;
        if (k == 0) {
            x[1] = x[0];
            y[1] = y[0];
        }
        if (k >= 0) {
            x[k] = ranks;
            y[k] = rank_bytes(one);
        }
    }
    if (x[1] == 0)
        return guess(c, pattern, n) * n;
    double slope = (y[0] - y[1]) / (x[0] - x[1]);
    double each = y[0] + (slope > 0 ? slope : 0) * (n - x[0]);
    return each * n;
}

double machine_bytes(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    double kb = 0;

    while (f && fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %lf", &kb) != 1)
        ;
    if (f)
        fclose(f);
    return kb * 1024;
}

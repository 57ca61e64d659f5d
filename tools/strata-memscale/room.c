/* Memory that a job may take: what the machine has available, or less where control groups limit this process, as a
 * batch system's or a container's do. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Files of a control group (cgroups(7)), version 2 and version 1. */
struct hierarchy {
    const char *limit, *used, *cache; /* cache: the line of memory.stat that the kernel gives back at need */
};
static const struct hierarchy second = {"memory.max", "memory.current", "inactive_file "},
                              first = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};

/* The number behind `name`, at the beginning of a line of ROOT/GROUP/FILE; -1: there is none, as for "max". */
static double number_in(const char *root, const char *group, const char *file, const char *name)
{
    char path[4600], line[256];
    double value = -1;

    snprintf(path, sizeof path, "%s%s/%s", root, group, file);
    FILE *f = fopen(path, "re");
    while (f && value < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%lf", &value) != 1)
            value = -1;
    if (f)
        fclose(f);
    return value;
}

static double group_leaves(const struct hierarchy *h, const char *root, const char *group)
{
    const double limit = number_in(root, group, h->limit, ""), used = number_in(root, group, h->used, "");
    const double cache = number_in(root, group, "memory.stat", h->cache);

    return limit < 0 || used < 0 ? INFINITY : fmax(limit - used + fmax(cache, 0), 0);
}

/* Of the group and those that it is in. A container may see its own group as the root only. */
static double groups_leave(const struct hierarchy *h, const char *root, char *group)
{
    double least = INFINITY;

    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        *end = '\0';
        least = fmin(least, group_leaves(h, root, group));
    }
    return least;
}

/* `groups`: lines of /proc/self/cgroup, NUMBER:CONTROLLERS:GROUP. INFINITY: no limit. */
static double control_groups_leave(FILE *groups, const char *root_second, const char *root_first)
{
    double least = INFINITY;
    char line[4200];

    while (fgets(line, sizeof line, groups)) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        (void)strsep(&rest, ":");
        const char *controllers = strsep(&rest, ":");
        if (!controllers || !rest)
            continue;
        if (!*controllers)
            least = fmin(least, groups_leave(&second, root_second, rest));
        else if (strcmp(controllers, "memory") == 0)
            least = fmin(least, groups_leave(&first, root_first, rest));
    }
    return least;
}

/* Bytes that are available. */
static double machine_bytes(void)
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

double estimate_room(void)
{
    double bytes = machine_bytes();
    FILE *groups = fopen("/proc/self/cgroup", "re");

    if (groups) {
        bytes = fmin(bytes, control_groups_leave(groups, "/sys/fs/cgroup", "/sys/fs/cgroup/memory"));
        fclose(groups);
    }
    return 0.9 * bytes;
}

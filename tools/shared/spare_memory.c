/* What the machine has available, or less where control groups limit this process, as a batch system's or a container's
 * do (cgroups(7)). */
#include "tools/shared/spare_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MOST_PATH 4096

/* The number behind `key` in a line of a file; false: there is none. */
static bool spare_number_in(const char *file, const char *key, uint64_t *n)
{
    FILE *f = fopen(file, "re");
    const size_t length = strlen(key);
    char line[128];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, key, length) == 0 && sscanf(line + length, "%" SCNu64, n) == 1;
    if (f)
        fclose(f);
    return found;
}

static bool spare_number(const char *folder, const char *name, const char *key, uint64_t *n)
{
    char file[MOST_PATH + 64];

    return snprintf(file, sizeof file, "%s/%s", folder, name) < (int)sizeof file && spare_number_in(file, key, n);
}

/* A control group's memory, in the second and the first version of such groups. */
struct group {
    const char *controllers, *folder, *limit, *use;
    const char *cache; /* in memory.stat: what the kernel takes back when it is needed */
};
static const struct group groups[] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}};

static uint64_t spare_of_group(const struct group *g, const char *folder)
{
    uint64_t limit, use, cache = 0;

    if (!spare_number(folder, g->limit, "", &limit) || !spare_number(folder, g->use, "", &use))
        return UINT64_MAX;
    (void)spare_number(folder, "memory.stat", g->cache, &cache);
    use -= cache < use ? cache : use;
    return limit > use ? limit - use : 0;
}

/* Each group from this one up to the root has its limit. A container may see its own as the root. */
static uint64_t spare_of_groups(const char *root, const struct group *g, char *path)
{
    uint64_t least = UINT64_MAX;
    char folder[MOST_PATH];

    for (char *slash = path; slash;) {
        if (snprintf(folder, sizeof folder, "%s%s%s", root, g->folder, path) < (int)sizeof folder) {
            const uint64_t spare = spare_of_group(g, folder);
            least = spare < least ? spare : least;
        }
        slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
    return least;
}

uint64_t spare_memory(const char *root)
{
    uint64_t least = UINT64_MAX, kib;
    char line[MOST_PATH];

    if (spare_number(root, "proc/meminfo", "MemAvailable:", &kib))
        least = kib * 1024;
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *f = fopen(line, "re");
    /* NUMBER:CONTROLLERS:PATH */
    while (f && fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        path[strcspn(path, "\n")] = 0;
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
            if (strcmp(controllers + 1, groups[i].controllers) == 0) {
                const uint64_t spare = spare_of_groups(root, &groups[i], path);
                least = spare < least ? spare : least;
            }
    }
    if (f)
        fclose(f);
    return least;
}

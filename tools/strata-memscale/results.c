/* Measurements so far: one JSON object a line, so that a run that is ended goes on where it was. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool folder_make(const char *folder)
{
    struct stat st;

    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return false;
    if (stat(folder, &st) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(st.st_mode) && access(folder, W_OK | X_OK) == 0;
}

json_t *lines_load(const char *path)
{
    json_t *all = json_array();
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "re");
    while (f && getline(&line, &room, f) > 0) {
        json_t *one = json_loads(line, 0, NULL); /* the last one may be cut off */
        if (json_is_object(one))
            json_array_append(all, one);
        json_decref(one);
    }
    free(line);
    if (f)
        fclose(f);
    return all;
}

/* With these parameters too: a name may have meant something else in an earlier run. */
static bool same_parameters(const json_t *one, const struct config *c)
{
    const json_t *set = json_object_get(one, "parameters");

    for (size_t i = 0; i < c->n; i++) {
        const char *value = json_string_value(json_object_get(set, c->set[i].name));
        if (!value || strcmp(value, c->set[i].value) != 0)
            return false;
    }
    return json_object_size(set) == c->n;
}

bool result_is(const json_t *one, const struct config *c, enum pattern pattern)
{
    const char *launcher = json_string_value(json_object_get(one, "launcher"));

    return strcmp(json_string_value(json_object_get(one, "config")), c->name) == 0 &&
           strcmp(json_string_value(json_object_get(one, "transport")), c->transport->name) == 0 &&
           strcmp(json_string_value(json_object_get(one, "pattern")), pattern_names[pattern]) == 0 &&
           (launcher ? strcmp(launcher, config_launcher(c)) == 0 : !c->launcher) && same_parameters(one, c);
}

bool results_has(const json_t *all, const struct config *c, enum pattern pattern, int n)
{
    const json_t *one;
    size_t i;

    json_array_foreach(all, i, one)
    {
        if (json_integer_value(json_object_get(one, "ranks")) == n && result_is(one, c, pattern))
            return true;
    }
    return false;
}

bool results_match(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"config", "transport", "parameters", "launcher"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *x = json_object_get(a, names[i]), *y = json_object_get(b, names[i]);
        if (x != y && !json_equal(x, y))
            return false;
    }
    return true;
}

bool lines_add(const char *path, const json_t *one)
{
    FILE *f = fopen(path, "ae");
    char *text = json_dumps(one, JSON_COMPACT | JSON_SORT_KEYS);
    /* A line of its own even behind one that a full disk cut off. */
    bool well = f && text && fprintf(f, "%s%s\n", ftell(f) > 0 ? "\n" : "", text) > 0 && fflush(f) == 0 &&
                fsync(fileno(f)) == 0;
    if (!well)
        fprintf(stderr, "strata-memscale: %s: %s; what was measured before is kept there\n", path, strerror(errno));
    free(text);
    if (f && fclose(f) != 0)
        well = false;
    return well;
}

static bool is_measurement(const json_t *one)
{
    return json_is_string(json_object_get(one, "config")) && json_is_string(json_object_get(one, "transport")) &&
           json_is_string(json_object_get(one, "pattern")) && json_integer_value(json_object_get(one, "ranks")) > 0;
}

json_t *results_load(const char *folder)
{
    char path[4200];
    size_t left_out = 0;

    snprintf(path, sizeof path, "%s/results.jsonl", folder);
    json_t *all = lines_load(path);
    for (size_t i = json_array_size(all); i-- > 0;) {
        if (is_measurement(json_array_get(all, i)))
            continue;
        json_array_remove(all, i);
        left_out++;
    }
    if (left_out)
        fprintf(stderr, "strata-memscale: %s: %zu of the lines are no measurements, and are left out\n", path,
                left_out);
    return all;
}

bool results_add(json_t *all, const char *folder, json_t *one)
{
    char path[4200];

    json_array_append(all, one);
    snprintf(path, sizeof path, "%s/results.jsonl", folder);
    return lines_add(path, one);
}

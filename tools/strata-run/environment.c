/* What the ranks find in their environment. */
#include "environment.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report.h"

extern char **environ;

const char *environment_get(const struct environment *env, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < env->n; i++)
        if (strncmp(env->list[i], name, length) == 0 && env->list[i][length] == '=')
            return env->list[i] + length + 1;
    return NULL;
}

void environment_set(struct environment *env, const char *name, size_t name_length, const char *value)
{
    size_t value_length = strlen(value), i = 0;
    char *text = malloc(name_length + value_length + 2);
    if (!text) {
        env->failed = 1;
        return;
    }
    memcpy(text, name, name_length);
    text[name_length] = '=';
    memcpy(text + name_length + 1, value, value_length + 1);
    while (i < env->n && strncmp(env->list[i], text, name_length + 1) != 0)
        i++;
    if (i < env->n) {
        free(env->list[i]);
        env->list[i] = text;
        return;
    }
    if (env->n + 1 >= env->room) {
        size_t room = env->room ? env->room * 2 : 128;
        char **more = realloc(env->list, room * sizeof(*more));
        if (!more) {
            env->failed = 1;
            free(text);
            return;
        }
        env->list = more;
        env->room = room;
    }
    env->list[env->n++] = text;
    env->list[env->n] = NULL;
}

/* Variables by which an outer launcher speaks to us and not to our ranks, whose reports are not of its job either.
 * PMIX_MCA_ are settings of the user's. */
static bool is_outer(const char *text)
{
    static const char *const names[] = {"STRATA_COMMAND_LINE=", "STRATA_MCA_mca_base_report_folder="};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0)
            return true;
    return strncmp(text, "PMIX_", 5) == 0 && strncmp(text, "PMIX_MCA_", 9) != 0;
}

static void add_export(struct environment *env, const char *text)
{
    const char *eq = strchr(text, '=');
    if (eq) {
        environment_set(env, text, (size_t)(eq - text), eq + 1);
        return;
    }
    const char *value = getenv(text);
    if (value)
        environment_set(env, text, strlen(text), value);
    else
        report_error("-x %s: not in the environment; ignored", text);
}

/* Settings that shrink libpmix in each rank: room for this many events that nobody has asked for yet (default 512), and
 * no wire formats of before PMIx 3, which no rank can need that has a libpmix this Strata can be built with. A name
 * that a newer libpmix does not know is no error behind a ^. */
static void add_small_pmix(struct environment *env)
{
    static const char *const rows[][2] = {{"PMIX_MCA_pmix_max_events", "128"}, {"PMIX_MCA_bfrops", "^v12,v20,v21"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (!environment_get(env, rows[i][0]))
            environment_set(env, rows[i][0], strlen(rows[i][0]), rows[i][1]);
}

static void add_settings(struct environment *env, const struct run_options *options)
{
    size_t room = 1;
    for (size_t i = 0; i < options->n_settings; i++)
        room += strlen(options->settings[i].name) + 1;
    char *names = malloc(room), *p = names;
    if (!names) {
        env->failed = 1;
        return;
    }
    *p = 0;
    for (size_t i = 0; i < options->n_settings; i++) {
        char variable[256] = "STRATA_MCA_";
        const strata_setting_t *s = &options->settings[i];
        size_t length = strlen(s->name);
        if (length + 12 > sizeof(variable))
            continue; /* no parameter has such a name: validation has refused it */
        memcpy(variable + 11, s->name, length + 1);
        environment_set(env, variable, 11 + length, s->value);
        if (p != names)
            *p++ = ',';
        memcpy(p, s->name, length + 1);
        p += length;
    }
    if (options->n_settings)
        environment_set(env, "STRATA_COMMAND_LINE", strlen("STRATA_COMMAND_LINE"), names);
    free(names);
}

int environment_create(const struct run_options *options, struct environment *out)
{
    *out = (struct environment){NULL, 0, 0, 0};
    for (char **e = environ; e && *e; e++) {
        const char *eq = strchr(*e, '=');
        if (eq && !is_outer(*e))
            environment_set(out, *e, (size_t)(eq - *e), eq + 1);
    }
    char folder[PATH_MAX];
    if (options->folder && getcwd(folder, sizeof(folder)))
        environment_set(out, "PWD", strlen("PWD"), folder);
    for (size_t i = 0; i < options->n_exports; i++)
        add_export(out, options->exports[i]);
    add_small_pmix(out);
    add_settings(out, options);
    if (out->failed)
        report_error("out of memory");
    return out->failed ? -1 : 0;
}

void environment_destroy(struct environment *env)
{
    for (size_t i = 0; i < env->n; i++)
        free(env->list[i]);
    free(env->list);
    *env = (struct environment){NULL, 0, 0, 0};
}

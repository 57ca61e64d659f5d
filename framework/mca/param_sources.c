/* Where values come from. Highest first: API, command line, environment, the user's file, the system's file. */
#define _GNU_SOURCE
#include "framework/mca/internal.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

#define ENV_PREFIX "STRATA_MCA_"

int st_settings_add(struct st_settings *set, enum st_param_source source, const char *name, const char *value,
                    const char *where)
{
    if (set->n == set->room) {
        size_t room = set->room ? 2 * set->room : 16;
        struct st_setting *v = realloc(set->v, room * sizeof(*v));
        if (!v)
            return STRATA_ERR_NOMEM;
        set->v = v;
        set->room = room;
    }
    struct st_setting s = {strdup(name), strdup(value), strdup(where), source};
    if (!s.name || !s.value || !s.where) {
        free(s.name);
        free(s.value);
        free(s.where);
        return STRATA_ERR_NOMEM;
    }
    set->v[set->n++] = s;
    return STRATA_OK;
}

void st_settings_free(struct st_settings *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->v[i].name);
        free(set->v[i].value);
        free(set->v[i].where);
    }
    free(set->v);
    *set = (struct st_settings){0};
}

const struct st_setting *st_settings_find(const struct st_settings *set, const char *name)
{
    const struct st_setting *best = NULL;
    for (size_t i = 0; i < set->n; i++)
        if (!strcmp(set->v[i].name, name) && (!best || set->v[i].source >= best->source))
            best = &set->v[i];
    return best;
}

char *st_home_path(const char *tail)
{
    const char *home = secure_getenv("HOME");
    char buf[4096];
    struct passwd pw, *found = NULL;
    if (!home || !*home) {
        if (getpwuid_r(geteuid(), &pw, buf, sizeof(buf), &found) || !found)
            return NULL;
        home = found->pw_dir;
    }
    size_t n = strlen(home) + strlen(tail) + 2;
    char *path = malloc(n);
    if (path)
        snprintf(path, n, "%s/%s", home, tail);
    return path;
}

/* Whether the comma list in STRATA_COMMAND_LINE, written by strata-run, names the parameter. */
static bool param_source_from_command_line(const char *list, const char *name, size_t length)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n == length && !strncmp(list, name, n))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static int param_source_add_environment(struct st_settings *set, char *err, size_t err_size)
{
    if (getauxval(AT_SECURE)) /* a set-user-id program does not let its caller choose which code it loads */
        return STRATA_OK;
    const char *list = getenv("STRATA_COMMAND_LINE");
    size_t prefix = strlen(ENV_PREFIX);
    for (char **e = environ; e && *e; e++) {
        const char *eq = strchr(*e, '=');
        if (strncmp(*e, ENV_PREFIX, prefix) || !eq)
            continue;
        const char *name = *e + prefix;
        size_t length = (size_t)(eq - name);
        char key[256], where[300];
        if (length == 0 || length >= sizeof(key))
            return st_mca_fail(STRATA_ERR_PARAM, err, err_size,
                               "environment variable %.*s: no parameter has such a name",
                               (int)(length > 80 ? 80 : prefix + length), *e);
        memcpy(key, name, length);
        key[length] = '\0';
        bool cmd = param_source_from_command_line(list, name, length);
        snprintf(where, sizeof(where), cmd ? "the command line of the launcher" : "environment " ENV_PREFIX "%s", key);
        int rc = st_settings_add(set, cmd ? ST_SOURCE_COMMAND_LINE : ST_SOURCE_ENVIRONMENT, key, eq + 1, where);
        if (rc)
            return st_mca_fail(rc, err, err_size, "out of memory while reading the environment");
    }
    return STRATA_OK;
}

static int param_source_add_table(struct st_settings *set, const strata_setting_t *t, size_t n,
                                  enum st_param_source source, const char *where, char *err, size_t err_size)
{
    if (n && !t)
        return st_mca_fail(STRATA_ERR_ARG, err, err_size, "settings: a count without a table");
    for (size_t i = 0; i < n; i++) {
        if (!t[i].name || !*t[i].name || !t[i].value)
            return st_mca_fail(STRATA_ERR_PARAM, err, err_size, "setting %zu from %s has no %s", i, where,
                               t[i].name && *t[i].name ? "value" : "name");
        int rc = st_settings_add(set, source, t[i].name, t[i].value, where);
        if (rc)
            return st_mca_fail(rc, err, err_size, "out of memory while reading settings");
    }
    return STRATA_OK;
}

/* A colon list; the first file has precedence, so it is added last. */
static int param_source_add_listed_files(struct st_settings *set, const char *list, char *err, size_t err_size)
{
    const char *end = list + strlen(list);
    while (end > list) {
        const char *start = end;
        while (start > list && start[-1] != ':')
            start--;
        if (start < end) {
            char *path = strndup(start, (size_t)(end - start));
            if (!path)
                return st_mca_fail(STRATA_ERR_NOMEM, err, err_size, "out of memory while reading parameter files");
            char why[512];
            int rc = st_param_file_read(set, path, why, sizeof(why));
            free(path);
            if (rc)
                return st_mca_fail(STRATA_ERR_PARAM, err, err_size, "%s", why);
        }
        end = start > list ? start - 1 : list;
    }
    return STRATA_OK;
}

static int param_source_add_default_files(struct st_settings *set, char *err, size_t err_size)
{
    int rc = st_param_file_read(set, ST_SYSCONF_DIR "/strata-mca-params.conf", err, err_size);
    if (rc && rc != STRATA_ERR_NOT_FOUND)
        return rc;
    char *path = st_home_path(".strata/mca-params.conf");
    if (!path)
        return STRATA_OK;
    rc = st_param_file_read(set, path, err, err_size);
    free(path);
    return rc == STRATA_ERR_NOT_FOUND ? STRATA_OK : rc;
}

int st_settings_collect(struct st_settings *set, const strata_config_t *config, char *err, size_t err_size)
{
    int rc = STRATA_OK;
    if (config)
        rc = param_source_add_table(set, config->settings, config->n_settings, ST_SOURCE_API,
                                    "the program's own settings", err, err_size);
    /* The environment first: what this process was given itself beats what its launcher was given. */
    if (!rc)
        rc = param_source_add_environment(set, err, err_size);
    if (!rc && config)
        rc = param_source_add_table(set, config->command_line, config->n_command_line, ST_SOURCE_COMMAND_LINE,
                                    "the command line", err, err_size);
    if (rc)
        return rc;
    const struct st_setting *files = st_settings_find(set, "mca_param_files");
    size_t before = set->n;
    if (!files)
        rc = param_source_add_default_files(set, err, err_size);
    else if (strcmp(files->value, "none"))
        rc = param_source_add_listed_files(set, files->value, err, err_size);
    for (size_t i = before; !rc && i < set->n; i++)
        if (!strcmp(set->v[i].name, "mca_param_files"))
            rc = st_mca_fail(STRATA_ERR_PARAM, err, err_size, "%s: mca_param_files cannot be set in a parameter file",
                             set->v[i].where);
    return rc;
}

/* Values of the command line: numbers, words, folders, parameters. */
#define _GNU_SOURCE
#include "option_values.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const bindings[] = {"", "none", "hwthread", "core", "numa", "socket", NULL};
static const char *const maps[] = {"slot", "core", "numa", "socket", NULL};

static void add_setting(struct argp_state *state, const char *name, const char *value)
{
    struct run_options *o = state->input;
    strata_setting_t *more = realloc(o->settings, (o->n_settings + 1) * sizeof(*more));
    if (!more) {
        argp_failure(state, RUN_FAILED, ENOMEM, "command line");
        return;
    }
    o->settings = more;
    o->settings[o->n_settings++] = (strata_setting_t){name, value};
}

/* NAME=VALUE, or NAME and the next word: no name has an equals sign. */
void option_parameter(struct argp_state *state, char *name)
{
    char *equals = strchr(name, '=');
    if (!equals && state->next >= state->argc)
        argp_error(state, "--mca %s needs a name and a value", name);
    if (equals)
        *equals = 0;
    add_setting(state, name, equals ? equals + 1 : state->argv[state->next++]);
}

/* The ranks print text and JSON, each its own; the matrix and the graph are of the whole job. */
void option_report(struct argp_state *state, const char *format)
{
    struct run_options *o = state->input;
    if (!format)
        format = "text";
    if (strcmp(format, "matrix") == 0)
        o->report_matrix = true;
    else if (strcmp(format, "dot") == 0)
        o->report_dot = true;
    else if (strcmp(format, "json") == 0 || strcmp(format, "text") == 0)
        add_setting(state, "mca_base_report_transports", format);
    else
        argp_error(state, "--report-transports=%s: must be text or json, matrix or dot", format);
}

enum run_report option_report_form(const struct argp_state *state, const char *option, const char *format)
{
    if (format && strcmp(format, "json") != 0 && strcmp(format, "text") != 0)
        argp_error(state, "%s=%s: must be text or json", option, format);
    return format && strcmp(format, "json") == 0 ? RUN_REPORT_JSON : RUN_REPORT_TEXT;
}

void option_export(struct argp_state *state, char *text)
{
    struct run_options *o = state->input;
    if (*text == '=' || !*text)
        argp_error(state, "-x %s: no variable is named", text);
    char **more = realloc(o->exports, (o->n_exports + 1) * sizeof(*more));
    if (!more) {
        argp_failure(state, RUN_FAILED, ENOMEM, "command line");
        return;
    }
    o->exports = more;
    o->exports[o->n_exports++] = text;
}

void option_count(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end)
        argp_error(state, "-n %s: not a number", text);
    if (n < 1)
        argp_error(state, "-n %s: a job has at least 1 rank", text);
    if (errno == ERANGE || n > RUN_MAX_RANKS)
        argp_error(state, "-n %s: more than %d ranks on one machine are not supported", text, RUN_MAX_RANKS);
    o->n = (int)n;
}

void option_timeout(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !isfinite(s) || s <= 0 || s > 1e9)
        argp_error(state, "--timeout %s: not a positive number of seconds", text);
    o->timeout_s = s;
}

/* The number of a word in a list. */
static int choose(const struct argp_state *state, const char *option, const char *text, const char *const *words)
{
    char list[128] = "";
    for (int i = 0; words[i]; i++) {
        size_t n = strlen(list);
        if (*words[i] && strcmp(words[i], text) == 0)
            return i;
        if (*words[i])
            snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", words[i]);
    }
    argp_error(state, "%s %s: must be one of %s", option, text, list);
    return 0;
}

void option_bind(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    o->bind = (enum run_bind)choose(state, "--bind-to", text, bindings);
}

const char *option_bind_name(enum run_bind kind)
{
    return bindings[kind];
}

void option_map(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    o->map = (enum run_map)choose(state, "--map-by", text, maps);
}

void option_hosts(const struct argp_state *state, const char *what)
{
    argp_error(state, "%s: strata-run starts one program on this machine; use Open MPI's mpirun, or srun --mpi=pmix",
               what);
}

/* Slurm's lists of machines have no ":SLOTS". */
static char *without_slots(const char *machines)
{
    char *names = strdup(machines), *to = names;
    for (const char *from = machines; names && *from; from += *from != 0) {
        if (*from == ':')
            from += strcspn(from, ",");
        if (*from)
            *to++ = *from;
    }
    if (names)
        *to = 0;
    return names;
}

void option_machines(const struct argp_state *state, const char *option, const char *srun_option, const char *machines)
{
    char *names = without_slots(machines);
    argp_error(state,
               "%s: strata-run starts ranks on this machine only; use Open MPI's mpirun, or srun --mpi=pmix: "
               "\"mpirun %s %s -np N PROGRAM\" or, under Slurm, \"srun --mpi=pmix %s %s -n N PROGRAM\" "
               "(docs/clusters.md)",
               option, option, machines, srun_option, names ? names : machines);
    free(names);
}

/* Other launchers separate several programs by a colon, after which there are options. */
void option_program(struct argp_state *state)
{
    struct run_options *o = state->input;
    o->program = state->argv + state->next - 1;
    state->next = state->argc;
    for (char **word = o->program; word[0] && word[1]; word++)
        if (strcmp(word[0], ":") == 0 && (strcmp(word[1], "-n") == 0 || strcmp(word[1], "-np") == 0))
            option_hosts(state, "several programs, separated by \":\"");
}

/* A name relative to where we are now, whatever --wdir says. */
static void take_path(const struct argp_state *state, const char *text, char **out)
{
    char here[PATH_MAX], *path = NULL;
    if (*text == '/' || !getcwd(here, sizeof(here)))
        path = strdup(text);
    else if (asprintf(&path, "%s/%s", here, text) < 0)
        path = NULL;
    if (!path)
        argp_failure(state, RUN_FAILED, ENOMEM, "command line");
    free(*out);
    *out = path;
}

void option_files(struct argp_state *state, char *text)
{
    static const char only[] = ":nocopy";
    struct run_options *o = state->input;
    size_t n = strlen(text), m = sizeof(only) - 1;
    o->output_nocopy = n >= m && strcmp(text + n - m, only) == 0;
    if (o->output_nocopy)
        text[n - m] = 0;
    if (!*text)
        argp_error(state, "--output-filename: no folder is named");
    take_path(state, text, &o->output_folder);
}

void option_report_file(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    take_path(state, text, &o->report_file);
}

/* The command line, by argp. Options end at the program's name: what follows is the program's. */
#include "options.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* libc finds it by name, so that it must be visible. */
__attribute__((visibility("default"))) const char *argp_program_version = "strata-run 0.1.0";

enum { KEY_MCA = 256, KEY_BIND, KEY_REPORT, KEY_SOFTHCA, KEY_TAG, KEY_TIMEOUT, KEY_KEEP_GOING };

static const struct argp_option rows[] = {
    {"n", 'n', "N", 0, "Number of ranks to start (obligatory)", 0},
    {"mca", KEY_MCA, "NAME VALUE", 0, "Set parameter NAME to VALUE in every rank; may be repeated", 0},
    {"bind-to", KEY_BIND, "core|none", 0,
     "Bind each rank to a core of its own, or not at all (default: core if there are enough cores)", 0},
    {"report-transports", KEY_REPORT, "text|json", OPTION_ARG_OPTIONAL,
     "At the end each rank prints how it reached each peer", 0},
    {"softhca", KEY_SOFTHCA, NULL, 0, "Give the ranks a verbs device in user space", 0},
    {"tag-output", KEY_TAG, NULL, 0, "Begin every line of output with [rank]", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "End the job after SECONDS with exit status 124", 0},
    {"keep-going", KEY_KEEP_GOING, NULL, 0, "Do not end the job when a rank fails; tell the other ranks", 0},
    {"export", 'x', "VAR[=VALUE]", 0, "Pass an environment variable to the ranks; may be repeated", 0},
    {0}};

static const char doc[] =
    "Start N processes of PROGRAM on this machine as the ranks of one parallel job."
    "\vExit status: that of the first rank that failed (128 + signal if a signal ended it); 2 for "
    "wrong usage, 124 after a timeout, 126 if PROGRAM cannot be executed, 127 if it is not found.";

static char *next_word(struct argp_state *state, const char *what)
{
    if (state->next >= state->argc)
        argp_error(state, "--mca %s needs a name and a value", what);
    return state->argv[state->next++];
}

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

static void add_export(struct argp_state *state, char *text)
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

static void set_count(struct argp_state *state, const char *text)
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

static void set_timeout(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    char *end;
    double s = strtod(text, &end);
    if (end == text || *end || !isfinite(s) || s <= 0 || s > 1e9)
        argp_error(state, "--timeout %s: not a positive number of seconds", text);
    o->timeout_s = s;
}

static void set_bind(struct argp_state *state, const char *text)
{
    struct run_options *o = state->input;
    if (strcmp(text, "core") == 0)
        o->bind = RUN_BIND_CORE;
    else if (strcmp(text, "none") == 0)
        o->bind = RUN_BIND_NONE;
    else
        argp_error(state, "--bind-to %s: must be core or none", text);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run_options *o = state->input;
    switch (key) {
    case 'n':
        set_count(state, arg);
        return 0;
    case KEY_MCA:
        add_setting(state, arg, next_word(state, arg));
        return 0;
    case KEY_BIND:
        set_bind(state, arg);
        return 0;
    case KEY_REPORT:
        if (arg && strcmp(arg, "json") != 0 && strcmp(arg, "text") != 0)
            argp_error(state, "--report-transports=%s: must be text or json", arg);
        add_setting(state, "mca_base_report_transports", arg ? arg : "text");
        return 0;
    case KEY_SOFTHCA:
        o->softhca = true;
        return 0;
    case KEY_TAG:
        o->tag_output = true;
        return 0;
    case KEY_TIMEOUT:
        set_timeout(state, arg);
        return 0;
    case KEY_KEEP_GOING:
        o->keep_going = true;
        return 0;
    case 'x':
        add_export(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        o->program = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (!o->n)
            argp_error(state, "how many ranks? -n N is missing");
        if (!o->program || !*o->program[0])
            argp_error(state, "which program? PROGRAM is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void run_options_parse(int argc, char **argv, struct run_options *out)
{
    static const struct argp parser = {rows, parse, "PROGRAM [ARGS...]", doc, NULL, NULL, NULL};
    memset(out, 0, sizeof(*out));
    argp_err_exit_status = RUN_USAGE;
    argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, out);
}

void run_options_free(struct run_options *options)
{
    free(options->settings);
    free(options->exports);
}

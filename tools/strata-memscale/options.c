/* The command line. */
#define _GNU_SOURCE 1
#include "config.h"
#include "memscale.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_FORCE = 256, KEY_LIST, KEY_PEERS, KEY_MODEL, KEY_WORLD, KEY_ESTIMATE, KEY_LAUNCHER };

static const struct argp_option table[] = {
    {"ranks", 'n', "N,...", 0, "Numbers of ranks (default: 2,4,8)", 0},
    {"pattern", 'p', "hello,pairwise,alltoall", 0, "Patterns (default: all)", 0},
    {"config", 'c', "NAME[:TRANSPORT[;PARAMETER=VALUE]...]", 0,
     "A preset, all of them (all), or a configuration of your own; may be repeated (default: srq)", 0},
    {"peers", KEY_PEERS, NULL, 0, "Measure Open MPI and MPICH, too, where they are installed", 0},
    {"model", KEY_MODEL, NULL, 0, "Predict the memory of jobs up to 1000000 ranks from the measurements", 0},
    {"launcher", KEY_LAUNCHER, "WORDS", 0,
     "What starts %n ranks, in place of strata-run; DIR has to be a folder that all machines see", 0},
    {"estimate", KEY_ESTIMATE, NULL, 0, "Print the most ranks that this machine holds, and measure nothing", 0},
    {"simulate-world", KEY_WORLD, "RANKS", 0,
     "The jobs are part of a world of so many ranks, of which the others are on machines that no rank sends to", 0},
    {"list", KEY_LIST, NULL, 0, "List the presets", 0},
    {"output", 'o', "DIR", 0, "Where the results are; a run that was ended goes on there (default: memscale)", 0},
    {"timeout", 't', "SECONDS", 0, "For one job (default: 600)", 0},
    {"force", KEY_FORCE, NULL, 0, "Try also what the machine does not seem to hold", 0},
    {0}};

/* Calls `one` for each item of a comma list. */
static void each_item(struct argp_state *state, const char *list, void (*one)(struct argp_state *, const char *))
{
    char copy[512], *rest = copy;

    if (strlen(list) >= sizeof copy)
        argp_error(state, "a list of more than %zu characters", sizeof copy - 1);
    strcpy(copy, list);
    for (const char *item; (item = strsep(&rest, ",")) != NULL;)
        one(state, item);
}

static long number(struct argp_state *state, const char *option, const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || end == text || n < 1 || n > MOST_RANKS)
        argp_error(state, "%s takes a number from 1 to %d, not \"%s\"", option, MOST_RANKS, text);
    return n;
}

static void take_ranks(struct argp_state *state, const char *item)
{
    struct plan *p = state->input;

    if (p->n_ranks == MOST_LIST)
        argp_error(state, "--ranks takes at most %d numbers", MOST_LIST);
    p->ranks[p->n_ranks++] = (int)number(state, "--ranks", item);
}

static void take_pattern(struct argp_state *state, const char *item)
{
    struct plan *p = state->input;

    for (int i = 0; i < N_PATTERNS; i++) {
        if (strcmp(item, pattern_names[i]) == 0 && p->n_patterns < N_PATTERNS) {
            p->patterns[p->n_patterns++] = (enum pattern)i;
            return;
        }
    }
    argp_error(state, "--pattern: no pattern \"%s\"; there are hello, pairwise, alltoall", item);
}

static void take_config(struct argp_state *state, const char *text)
{
    char why[1400];

    if (!config_add(state->input, text, why, sizeof why))
        argp_error(state, "%s", why);
}

static void launch(struct argp_state *state)
{
    struct plan *p = state->input;
    char why[160];

    if (!config_launch(p, p->launcher, why, sizeof why))
        argp_error(state, "%s", why);
}

static void simulate(struct argp_state *state)
{
    struct plan *p = state->input;
    char why[160];

    for (size_t i = 0; i < p->n_ranks; i++)
        if (p->ranks[i] > p->world)
            argp_error(state, "--simulate-world: %d ranks are more than the world's %d", p->ranks[i], p->world);
    if (!config_simulate(p, p->world, why, sizeof why))
        argp_error(state, "%s", why);
}

static void defaults(struct argp_state *state)
{
    struct plan *p = state->input;

    if (!p->n_ranks)
        each_item(state, "2,4,8", take_ranks);
    if (!p->n_patterns)
        each_item(state, "hello,pairwise,alltoall", take_pattern);
    if (!p->n_configs)
        take_config(state, "srq");
    if (p->peers)
        config_add_peers(p);
    if (p->world && p->launcher)
        argp_error(state, "--simulate-world is of this machine: not with --launcher");
    if (p->world)
        simulate(state);
    if (p->launcher)
        launch(state);
    p->folder = p->folder ? p->folder : "memscale";
    if (!p->estimate && !folder_make(p->folder))
        argp_failure(state, EXIT_USER, errno, "%s", p->folder);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct plan *p = state->input;
    char why[80];

    switch (key) {
    case 'n':
        each_item(state, arg, take_ranks);
        return 0;
    case 'p':
        each_item(state, arg, take_pattern);
        return 0;
    case 'c':
        take_config(state, arg);
        return 0;
    case 'o':
        p->folder = arg;
        return 0;
    case 't':
        p->timeout = (int)number(state, "--timeout", arg);
        return 0;
    case KEY_FORCE:
        p->force = true;
        return 0;
    case KEY_PEERS:
        p->peers = true;
        return 0;
    case KEY_MODEL:
        p->model = true;
        return 0;
    case KEY_LAUNCHER:
        if (!strstr(arg, "%n"))
            argp_error(state, "--launcher takes words with %%n for the number of ranks, not \"%s\"", arg);
        if (!launcher_fits(arg, why, sizeof why))
            argp_error(state, "%s", why);
        p->launcher = arg;
        return 0;
    case KEY_ESTIMATE:
        p->estimate = true;
        return 0;
    case KEY_WORLD:
        p->world = (int)number(state, "--simulate-world", arg);
        return 0;
    case KEY_LIST:
        configs_print();
        exit(EXIT_SUCCESS);
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\"", arg);
        return 0;
    case ARGP_KEY_END:
        defaults(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *f, struct argp_state *state)
{
    (void)state;
    fprintf(f, "strata-memscale (Strata) %s\n", PACKAGE_VERSION);
}

void options_read(struct plan *p, int argc, char **argv)
{
    static const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "Measures memory, start and latency of jobs on this machine as the number of ranks grows.\v"
               "Exit status: 0; 1 when a job failed, was refused or could not be recorded, or the model was "
               "more than 10 % wrong; 2 for wrong usage."};

    p->timeout = 600;
    argp_program_version_hook = print_version;
    argp_err_exit_status = EXIT_USER;
    argp_parse(&argp, argc, argv, 0, NULL, p);
}

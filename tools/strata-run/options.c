/* The command line, by argp. Options end at the program's name: what follows is the program's. */
#include "config.h"
#include "options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "option_values.h"

/* libc finds it by name, so that it must be visible. */
__attribute__((visibility("default"))) const char *argp_program_version = "strata-run (Strata) " PACKAGE_VERSION;

enum {
    KEY_MCA = 256,
    KEY_BIND,
    KEY_MAP,
    KEY_SHOW_MAP,
    KEY_FOLDER,
    KEY_REPORT,
    KEY_COUNTERS,
    KEY_MEMORY,
    KEY_REPORT_FILE,
    KEY_SOFTHCA,
    KEY_MPI,
    KEY_TAG,
    KEY_TIMEOUT,
    KEY_KEEP_GOING,
    KEY_NO_PTY,
    KEY_FILES,
    KEY_HOSTS,
    KEY_HOSTFILE
};

static const struct argp_option rows[] = {
    {"n", 'n', "N", 0, "Number of ranks to start (obligatory)", 0},
    {"np", 'n', NULL, OPTION_ALIAS, NULL, 0},
    {"mca", KEY_MCA, "NAME VALUE", 0, "Set parameter NAME to VALUE in every rank, also as NAME=VALUE; may be repeated",
     0},
    {"bind-to", KEY_BIND, "core|socket|numa|hwthread|none", 0,
     "What each rank is bound to (default: what --map-by names, else core; none if there are not enough of them)", 0},
    {"map-by", KEY_MAP, "slot|core|socket|numa", 0,
     "Ranks take the processors in order (slot), or go round the cores, sockets or NUMA nodes (default: slot)", 0},
    {"display-map", KEY_SHOW_MAP, NULL, 0, "Say which processors each rank is bound to, on standard error", 0},
    {"report-bindings", KEY_SHOW_MAP, NULL, OPTION_ALIAS, NULL, 0},
    {"wdir", KEY_FOLDER, "DIR", 0, "Start the ranks in folder DIR", 0},
    {"wd", KEY_FOLDER, NULL, OPTION_ALIAS, NULL, 0},
    {"report-transports", KEY_REPORT, "text|json|matrix|dot", OPTION_ARG_OPTIONAL,
     "At the end each rank prints how it reached each peer, and what it sent and received; or a table or graph of all "
     "ranks",
     0},
    {"report-counters", KEY_COUNTERS, "text|json", OPTION_ARG_OPTIONAL,
     "Print what the ranks counted, at the end and on SIGUSR1", 0},
    {"report-memory", KEY_MEMORY, "text|json", OPTION_ARG_OPTIONAL,
     "Print what memory Strata holds in the ranks, at the end and on SIGUSR1", 0},
    {"report-file", KEY_REPORT_FILE, "FILE", 0, "Write these reports of the whole job to FILE, not to standard error",
     0},
    {"softhca", KEY_SOFTHCA, NULL, 0, "Give the ranks a verbs device in user space", 0},
    {"mpi", KEY_MPI, NULL, 0, "PROGRAM is an MPI program of Open MPI 5.0: its messages go over Strata", 0},
    {"tag-output", KEY_TAG, NULL, 0, "Begin every line of output with [rank]", 0},
    {"output-filename", KEY_FILES, "DIR[:nocopy]", 0,
     "Write the output of rank N to DIR/rank.N/stdout and stderr too; with :nocopy only there", 0},
    {"no-pty", KEY_NO_PTY, NULL, 0, "Give the ranks a pipe as standard output, and no pseudo-terminal", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "End the job after SECONDS with exit status 124", 0},
    {"keep-going", KEY_KEEP_GOING, NULL, 0, "Do not end the job when a rank fails; tell the other ranks", 0},
    {"export", 'x', "VAR[=VALUE]", 0, "Pass an environment variable to the ranks; may be repeated", 0},
    {"host", KEY_HOSTS, "HOSTS", OPTION_HIDDEN, NULL, 0},
    {"H", KEY_HOSTS, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0},
    {"hostfile", KEY_HOSTFILE, "FILE", OPTION_HIDDEN, NULL, 0},
    {"machinefile", KEY_HOSTFILE, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 0},
    {0}};

static const char doc[] =
    "Start N processes of PROGRAM on this machine as the ranks of one parallel job."
    "\vExit status: that of the first rank that failed (128 + signal if a signal ended it); 2 for "
    "wrong usage, 124 after a timeout, 126 if PROGRAM cannot be executed, 127 if it is not found.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run_options *o = state->input;
    switch (key) {
    case 'n':
        option_count(state, arg);
        return 0;
    case KEY_MCA:
        option_parameter(state, arg);
        return 0;
    case KEY_BIND:
        option_bind(state, arg);
        return 0;
    case KEY_MAP:
        option_map(state, arg);
        return 0;
    case KEY_SHOW_MAP:
        o->show_map = true;
        return 0;
    case KEY_FOLDER:
        o->folder = arg;
        return 0;
    case KEY_HOSTS:
        option_machines(state, "--host", "-w", arg);
        return 0;
    case KEY_HOSTFILE:
        option_machines(state, "--hostfile", "--nodefile", arg);
        return 0;
    case KEY_REPORT:
        option_report(state, arg);
        return 0;
    case KEY_COUNTERS:
        o->report_counters = option_report_form(state, "--report-counters", arg);
        return 0;
    case KEY_MEMORY:
        o->report_memory = option_report_form(state, "--report-memory", arg);
        return 0;
    case KEY_REPORT_FILE:
        option_report_file(state, arg);
        return 0;
    case KEY_SOFTHCA:
        o->softhca = true;
        return 0;
    case KEY_MPI:
        o->mpi = true;
        return 0;
    case KEY_TAG:
        o->tag_output = true;
        return 0;
    case KEY_FILES:
        option_files(state, arg);
        return 0;
    case KEY_NO_PTY:
        o->no_pty = true;
        return 0;
    case KEY_TIMEOUT:
        option_timeout(state, arg);
        return 0;
    case KEY_KEEP_GOING:
        o->keep_going = true;
        return 0;
    case 'x':
        option_export(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        option_program(state);
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
    argp_parse(&parser, argc, argv, ARGP_IN_ORDER | ARGP_LONG_ONLY, NULL, out);
}

void run_options_free(struct run_options *options)
{
    free(options->settings);
    free(options->exports);
    free(options->output_folder);
    free(options->report_file);
}

/* The command line of strata-miba. */
#include "config.h"
#include "options.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_LIST = 'l',
    KEY_JSON = 'j',
    KEY_CSV = 'c',
    KEY_OUTPUT = 'o',
    KEY_SERVER = 's',
    KEY_CONNECT = 'C',
    KEY_TCP = 'p',
    KEY_REPORT = 'r',
    KEY_RESUME = 0x100,
    KEY_DRAW,
    KEY_PROGRESS,
    KEY_MAX,
    KEY_MIN,
    KEY_ABOUT,
    KEY_SETTING = 0x200, /* and the rows that follow */
};

#define FIXED    16u
#define MOST_ROW 32u

static const struct argp_option fixed[FIXED] = {
    {"list", KEY_LIST, NULL, 0, "List the tests, with what each isolates, and run none", 1},
    {"about", KEY_ABOUT, "TEST", 0, "What a test isolates, where the paper has it, and its cases", 1},
    {"server", KEY_SERVER, NULL, 0, "Wait for a client and take the other side's part in its tests", 2},
    {"connect", KEY_CONNECT, "HOST", 0, "Run the tests against the server there", 2},
    {"tcp-port", KEY_TCP, "N", 0, "TCP port of the server (18524)", 2},
    {"json", KEY_JSON, NULL, 0, "Print JSON, one object a line: device and settings, each result, the end", 3},
    {"csv", KEY_CSV, NULL, 0, "Print CSV", 3},
    {"output", KEY_OUTPUT, "FILE", 0, "Write the results to FILE", 3},
    {"report", KEY_REPORT, "FOLDER", 0,
     "Write results.jsonl, report.md and plots into FOLDER, which is made; implies --progress", 3},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on with the run that left its results in the report's folder, or in the --output of --json", 3},
    {"draw", KEY_DRAW, "FOLDER", 0,
     "Write report.md and the plots of the results in FOLDER anew, and measure nothing: pictures of a machine without "
     "gnuplot",
     3},
    {"progress", KEY_PROGRESS, NULL, 0, "Print a line a second on stderr after two seconds (so on a terminal, too)", 3},
    {"max", KEY_MAX, "NAME.VALUE=LIMIT", 0,
     "Exit with 3 when the median of a test or figure is more: latency.8=2us; may be given several times", 4},
    {"min", KEY_MIN, "NAME.VALUE=LIMIT", 0, "The same when it is less: bandwidth.64k=5GB/s", 4},
    {NULL, 0, NULL, 0, "Settings, which a server and its client compare:", 5},
};

static void add_test(struct options *o, struct argp_state *state, const char *name)
{
    const struct miba_test *t = miba_test_of(name);

    if (!t)
        argp_error(state, "there is no test \"%s\"; --list shows them", name);
    if (o->n_tests == MOST_TESTS)
        argp_error(state, "more than %u tests", MOST_TESTS);
    o->tests[o->n_tests++] = t;
}

static void add_threshold(struct options *o, struct argp_state *state, const char *text, bool most)
{
    if (o->n_thresholds == MOST_THRESHOLDS)
        argp_error(state, "more than %u thresholds", MOST_THRESHOLDS);
    const char *wrong = threshold_take(&o->thresholds[o->n_thresholds++], text, most);
    if (wrong)
        argp_error(state, "--%s %s: %s", most ? "max" : "min", text, wrong);
}

static void check(struct options *o, struct argp_state *state)
{
    if (o->draw && (o->n_tests || o->resume || o->session.server || o->session.connect))
        argp_error(state, "--draw measures nothing: no tests, --resume, --server or --connect beside it");
    if (o->resume && !o->report && (!o->output || o->form != FORM_JSON))
        argp_error(state, "--resume goes on with what --report, or --json with --output, has left: name it");
    if (o->report && (o->output || o->form != FORM_TEXT))
        argp_error(state, "--report writes JSON lines to its folder: no --output, --json or --csv beside it");
    if (o->report) {
        const int n = snprintf(o->report_output, sizeof o->report_output, "%s/results.jsonl", o->report);
        if (n >= (int)sizeof o->report_output)
            argp_error(state, "--report: the name is too long");
        o->output = o->report_output;
        o->form = FORM_JSON;
    }
    o->progress |= (o->report && !o->draw) || isatty(STDERR_FILENO);
    if (o->session.server && (o->session.connect || o->n_tests))
        argp_error(state, "--server takes part in what its client runs: no tests, no --connect");
    if (o->session.server && (o->output || o->n_thresholds))
        argp_error(state, "reports, results and thresholds are the client's, not the server's");
    if (!o->session.server && !o->list && !o->help_test && !o->draw && o->n_tests == 0)
        argp_error(state, "which test? --list shows them; \"all\" runs all of them");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case KEY_LIST:
        o->list = true;
        return 0;
    case KEY_ABOUT:
        o->help_test = miba_test_of(arg);
        if (!o->help_test)
            argp_error(state, "there is no test \"%s\"; --list shows them", arg);
        return 0;
    case KEY_JSON:
        o->form = FORM_JSON;
        return 0;
    case KEY_CSV:
        o->form = FORM_CSV;
        return 0;
    case KEY_OUTPUT:
        o->output = arg;
        return 0;
    case KEY_REPORT:
        o->report = arg;
        return 0;
    case KEY_DRAW:
        o->draw = true;
        o->report = arg;
        return 0;
    case KEY_RESUME:
        o->resume = true;
        return 0;
    case KEY_PROGRESS:
        o->progress = true;
        return 0;
    case KEY_SERVER:
        o->session.server = true;
        return 0;
    case KEY_CONNECT:
        o->session.connect = arg;
        return 0;
    case KEY_TCP:
        o->session.port = arg;
        return 0;
    case KEY_MAX:
    case KEY_MIN:
        add_threshold(o, state, arg, key == KEY_MAX);
        return 0;
    case ARGP_KEY_ARG:
        if (strcmp(arg, "all") == 0)
            for (unsigned i = 0; i < miba_tests_count(); i++)
                add_test(o, state, miba_tests[i]->name);
        else
            add_test(o, state, arg);
        return 0;
    case ARGP_KEY_END:
        check(o, state);
        return 0;
    default:
        break;
    }
    if (key < KEY_SETTING || key >= KEY_SETTING + (int)miba_settings_count())
        return ARGP_ERR_UNKNOWN;
    const char *wrong = settings_set(&o->set, (unsigned)(key - KEY_SETTING), arg);
    if (wrong)
        argp_error(state, "--%s %s: %s", miba_settings[key - KEY_SETTING].name, arg, wrong);
    return 0;
}

static void print_version(FILE *f, struct argp_state *state)
{
    (void)state;
    fprintf(f, "strata-miba (Strata) %s\n", PACKAGE_VERSION);
}

void options_read(struct options *o, int argc, char **argv)
{
    struct argp_option table[FIXED + MOST_ROW + 1] = {{0}};
    unsigned n = 0;
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .args_doc = "TEST...\n--server\n--list\n--draw FOLDER",
        .doc =
            "Measures what a verbs device costs, component by component. Without --server and --connect both sides are "
            "processes of this machine.\v"
            "Exit status: 0 when all was measured that the device and the machine can do; 1 when a test failed, the "
            "peer was "
            "lost or results could not be written; 2 for a mistake on the command line, settings that differ, or no "
            "usable "
            "device; 3 when a threshold was not held, or met a result that is marked."};

    while (n < FIXED && (fixed[n].name || fixed[n].doc)) {
        table[n] = fixed[n];
        n++;
    }
    for (unsigned row = 0; row < miba_settings_count() && row < MOST_ROW; row++)
        table[n++] = (struct argp_option){.name = miba_settings[row].name,
                                          .key = KEY_SETTING + (int)row,
                                          .arg = miba_settings[row].arg,
                                          .doc = miba_settings[row].help,
                                          .group = miba_settings[row].compared ? 5 : 6};
    *o = (struct options){.session = {.port = "18524"}};
    settings_defaults(&o->set);
    argp_program_version_hook = print_version;
    argp_err_exit_status = EXIT_USER;
    argp_parse(&argp, argc, argv, 0, NULL, o);
}

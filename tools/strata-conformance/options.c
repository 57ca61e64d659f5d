/* The command line of strata-conformance. */
#include "config.h"
#include "options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_LIST = 'l', KEY_ONLY = 'o', KEY_JSON = 'j', KEY_THREADS = 't', KEY_TIMEOUT = 0x100, KEY_MCA };

static const struct argp_option table[] = {
    {"list", KEY_LIST, NULL, 0, "List the cases, with the ranks that each needs, and run none", 0},
    {"only", KEY_ONLY, "CASE", 0, "Run cases whose name has CASE in it; may be given several times", 0},
    {"threads", KEY_THREADS, NULL, 0,
     "Ranks are threads of this process, each case in a process of its own (what happens without a launcher)", 0},
    {"timeout", KEY_TIMEOUT, "S", 0, "Seconds after which a case counts as hung (300)", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON, one object a line: each case, then the sums", 0},
    {"mca", KEY_MCA, "NAME VALUE", 0, "Set a Strata parameter (two words); may be given several times", 0},
    {0}};

bool options_select(const struct options *o, const char *name)
{
    for (size_t i = 0; i < o->n_only; i++)
        if (strstr(name, o->only[i]))
            return true;
    return o->n_only == 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    char *end = NULL;

    switch (key) {
    case KEY_LIST:
        o->list = true;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case KEY_THREADS:
        o->threads = true;
        return 0;
    case KEY_ONLY:
        if (o->n_only == MOST_ONLY)
            argp_error(state, "--only: more than %d", MOST_ONLY);
        o->only[o->n_only++] = arg;
        return 0;
    case KEY_TIMEOUT:
        o->timeout_s = (int)strtol(arg, &end, 10);
        if (end == arg || *end || o->timeout_s < 1)
            argp_error(state, "--timeout takes a number of seconds, not \"%s\"", arg);
        return 0;
    case KEY_MCA:
        if (state->next >= state->argc)
            argp_error(state, "--mca takes two words, a name and a value; there is only \"%s\"", arg);
        if (o->n_settings == MOST_SETTINGS)
            argp_error(state, "--mca: more than %d", MOST_SETTINGS);
        o->settings[o->n_settings++] = (strata_setting_t){arg, state->argv[state->next++]};
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\"", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *f, struct argp_state *state)
{
    (void)state;
    fprintf(f, "strata-conformance (Strata) %s\n", PACKAGE_VERSION);
}

void options_read(struct options *o, int argc, char **argv)
{
    static const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "Tests a transport: the contract of transports, clients of the worker, and the meaning of messages over "
               "it. "
               "Under strata-run ranks are processes, alone they are threads.\v"
               "Exit status: 0 when every case that ran has passed; 1 when one failed; 2 for a mistake on the command "
               "line, when Strata did not start or a rank is not reached; 77 when no case could run."};
    *o = (struct options){.timeout_s = 300};
    argp_program_version_hook = print_version;
    argp_err_exit_status = EXIT_USER;
    argp_parse(&argp, argc, argv, 0, NULL, o);
}

/* The command line of strata-info. */
#include "config.h"
#include "info.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_BUILD = 'b',
    KEY_COUNTERS = 'n',
    KEY_DEVICES = 'd',
    KEY_COMPONENTS = 'c',
    KEY_PARAM = 'p',
    KEY_TUNING = 't',
    KEY_EXPLAIN = 'e',
    KEY_JSON = 'j',
    KEY_LEVEL = 'l',
    KEY_LIVE = 'i',
    KEY_MCA = 0x100
};

static const struct argp_option table[] = {
    {"components", KEY_COMPONENTS, NULL, 0, "List all components (what happens without any option)", 0},
    {"param", KEY_PARAM, "FRAMEWORK COMPONENT|all", 0,
     "Show parameters: value, where it was set, range and help. FRAMEWORK may be \"all\" as well; \"mca base\" are "
     "those "
     "of the core",
     0},
    {"level", KEY_LEVEL, "1..9", 0, "Show parameters up to this level: 1 for users, 9 (the default) for developers", 0},
    {"explain", KEY_EXPLAIN, NULL, 0,
     "Start Strata here and say for each component whether it was loaded, rejected and why, or chosen", 0},
    {"counters", KEY_COUNTERS, NULL, 0,
     "Start Strata here and show every counter that components have: name, value, unit, and what it counts", 0},
    {"devices", KEY_DEVICES, NULL, 0,
     "Open the transports here, outside of any job, and show each device: limits, capabilities, latency and bandwidth; "
     "and "
     "why others cannot be used",
     0},
    {"tuning", KEY_TUNING, NULL, 0,
     "Show by which protocol messages from rank 0 to each peer go, by length and traffic, and the facts and parameters "
     "that decide. Within a job (strata-run -n 2 strata-info --tuning) of that job, else of one of two ranks here",
     0},
    {"live", KEY_LIVE, "PID", 0,
     "Show a rank that is running, by its process id: messages and bytes by peer and transport, and memory", 0},
    {"build", KEY_BUILD, NULL, 0, "Show how this Strata was built: compiler, options, versions of libraries", 0},
    {"json", KEY_JSON, NULL, 0, "Print JSON", 0},
    {"mca", KEY_MCA, "NAME VALUE", 0, "Set a parameter, as for strata-run; may be given several times", 0},
    {0}};

/* Words that follow the option as separate arguments. */
static int words_of(int key)
{
    return key == KEY_PARAM || key == KEY_MCA ? 2 : key == KEY_LEVEL || key == KEY_LIVE ? 1 : 0;
}

static void __attribute__((noreturn)) complain(const char *text, const char *what, const char *near)
{
    fprintf(stderr, "strata-info: %s%s%s", text, what, what[0] ? "\"" : "");
    if (near)
        fprintf(stderr, "; did you mean \"%s\"?", near);
    fprintf(stderr, "\nTry \"strata-info --help\".\n");
    exit(EXIT_USER);
}

static void take_setting(struct options *o, const char *name, const char *value)
{
    strata_setting_t *s = realloc(o->settings, (o->n_settings + 1) * sizeof(*s));
    if (!s)
        complain("out of memory", "", NULL);
    o->settings = s;
    s[o->n_settings++] = (strata_setting_t){name, value};
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case KEY_COMPONENTS:
        o->components = true;
        return 0;
    case KEY_EXPLAIN:
        o->explain = true;
        return 0;
    case KEY_BUILD:
        o->build = true;
        return 0;
    case KEY_COUNTERS:
        o->counters = true;
        return 0;
    case KEY_DEVICES:
        o->devices = true;
        return 0;
    case KEY_TUNING:
        o->tuning = true;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    case KEY_LEVEL: {
        char *end;
        long level = strtol(arg, &end, 10);
        if (*end || end == arg || level < 1 || level > 9)
            complain("--level takes a number from 1 to 9, not \"", arg, NULL);
        o->level = (int)level;
        return 0;
    }
    case KEY_LIVE: {
        char *end;
        long pid = strtol(arg, &end, 10);
        if (*end || end == arg || pid < 1 || pid > 1 << 30)
            complain("--live takes a process id, not \"", arg, NULL);
        o->live = (int)pid;
        return 0;
    }
    case KEY_PARAM: {
        bool more = state->next < state->argc && state->argv[state->next][0] != '-';
        if (!more && strcmp(arg, "all") != 0)
            complain("--param takes two words, a framework and a component (or \"all\"); there is only \"", arg, NULL);
        o->param_framework = arg;
        o->param_component = more ? state->argv[state->next++] : "all";
        return 0;
    }
    case KEY_MCA:
        if (state->next >= state->argc)
            complain("--mca takes two words, a name and a value; there is only \"", arg, NULL);
        take_setting(o, arg, state->argv[state->next++]);
        return 0;
    case ARGP_KEY_ARG:
        complain("unexpected argument \"", arg, NULL);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* argp names an option that does not exist, but not the one that was meant: look before it does. */
static void check_long_options(int argc, char **argv)
{
    enum { MOST = 16 };
    const char *names[MOST] = {"help", "usage", "version"};
    size_t n = 3;
    for (const struct argp_option *t = table; t->name; t++)
        names[n++] = t->name;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        const char *word = argv[i] + 2;
        size_t length = strcspn(word, "=");
        bool known = false;
        for (size_t k = 0; k < n; k++)
            known = known || !strncmp(names[k], word, length); /* argp accepts beginnings of names */
        if (!known) {
            char name[64];
            snprintf(name, sizeof(name), "%.*s", (int)(length < 60 ? length : 60), word);
            const char *near = st_info_nearest(name, names, n);
            char option[80];
            snprintf(option, sizeof(option), "--%s", near ? near : "");
            complain("there is no option \"", argv[i], near ? option : NULL);
        }
        for (const struct argp_option *t = table; t->name; t++)
            if (!strncmp(t->name, word, length) && words_of(t->key))
                i += words_of(t->key) - (word[length] == '=');
    }
}

static void print_version(FILE *f, struct argp_state *state)
{
    (void)state;
    fprintf(f, "strata-info (Strata) %s\n", PACKAGE_VERSION);
}

void options_read(struct options *o, int argc, char **argv)
{
    static const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "Shows which components and parameters Strata has, what they are set to and by whom, and what would be "
               "chosen on this machine.\v"
               "Exit status: 0; 1 when no context could be made (--explain, --counters, --devices, --tuning), or the "
               "process did "
               "not answer (--live); 2 for a "
               "component, "
               "parameter "
               "or option "
               "that does not exist."};
    argp_program_version_hook = print_version;
    argp_err_exit_status = EXIT_USER;
    check_long_options(argc, argv);
    argp_parse(&argp, argc, argv, 0, NULL, o);
    bool others = o->components || o->param_framework || o->explain || o->counters || o->devices || o->build;
    if (!o->param_framework && !o->explain && !o->counters && !o->devices && !o->build && !o->tuning)
        o->components = true;
    if (o->tuning && (others || o->live))
        complain("--tuning is of a job and stands alone", "", NULL);
    if (o->live && others)
        complain("--live is of a process and stands alone", "", NULL);
}

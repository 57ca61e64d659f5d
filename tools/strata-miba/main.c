/* strata-miba: what a verbs device costs, component by component. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include "options.h"

static void list(void)
{
    for (unsigned i = 0; i < miba_tests_count(); i++)
        printf("%-18s %-24s by %s\n", miba_tests[i]->name, miba_tests[i]->paper, miba_tests[i]->x_name);
}

static int print_case(void *arg, const struct miba_case *c)
{
    char text[160];

    (void)arg;
    case_text(c, text, sizeof text);
    printf("  %s\n", text);
    return 0;
}

static void about(const struct miba_test *t, const struct settings *set)
{
    printf("%s: %s.\n%s\n\nCases:\n", t->name, t->paper, t->isolates);
    cases_visit(t, set, print_case, NULL);
}

static json_t *about_run(const struct miba *m)
{
    json_t *settings = settings_json(&m->set, false);

    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:i, s:o}", "tool", "strata-miba", "version", PACKAGE_VERSION,
                     "device", m->dev.name, "port", (int)m->dev.port_number, "firmware", m->dev.attr.fw_ver, "link",
                     m->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", "mtu",
                     (int)device_mtu(&m->dev, &m->set), "gid_index", m->dev.gid_index, "settings", settings);
}

struct walk {
    struct miba *m;
    bool failed;
};

static int visit(void *arg, const struct miba_case *c)
{
    struct walk *w = arg;

    bool failed = false;
    const enum miba_status status = lead_case(w->m, c, &failed);
    w->failed |= failed;
    return (int)status;
}

/* All tests. Anything but MIBA_OK ended them early. */
static enum miba_status run_tests(struct miba *m, const struct options *o, bool *failed)
{
    struct walk w = {.m = m};
    json_t *first = about_run(m);
    int stop = (int)results_begin(m->results, first, &m->why);

    json_decref(first);
    for (unsigned i = 0; !stop && i < o->n_tests; i++)
        stop = cases_visit(o->tests[i], &m->set, visit, &w);
    *failed = w.failed;
    return (enum miba_status)stop;
}

static int said(const struct miba_why *why, int status)
{
    fprintf(stderr, "strata-miba: %s\n", why->text);
    return status;
}

static int lead(struct miba *m, const struct options *o)
{
    bool failed = false;
    const enum miba_status status = run_tests(m, o, &failed);
    int exit_status = status || failed ? EXIT_FAILED : EXIT_DONE;

    if (status)
        said(&m->why, EXIT_FAILED);
    if (thresholds_check(o->thresholds, o->n_thresholds, m->results) && exit_status == EXIT_DONE)
        exit_status = EXIT_BEYOND;
    if (!results_end(m->results, exit_status, status ? m->why.text : NULL))
        exit_status = EXIT_FAILED;
    return exit_status;
}

static int run(struct miba *m, const struct options *o)
{
    enum miba_status status = MIBA_OK;
    int exit_status;

    if (!o->session.server) {
        status = results_open(m->results, o->output, o->form, &m->why);
        if (status)
            return said(&m->why, EXIT_FAILED);
    }
    status = session_begin(m, &o->session);
    if (status)
        return said(&m->why, status == MIBA_LOST ? EXIT_FAILED : EXIT_USER);
    status = device_open(&m->dev, &m->set, &m->why);
    if (status) {
        exit_status = said(&m->why, EXIT_USER);
    } else {
        exit_status = EXIT_DONE;
        if (m->leads)
            exit_status = lead(m, o);
        else if (follow(m))
            exit_status = said(&m->why, EXIT_FAILED);
        device_close(&m->dev);
    }
    const bool child_well = session_end(m);
    return child_well || exit_status ? exit_status : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    struct options *o = calloc(1, sizeof *o);
    struct link *link = calloc(1, sizeof *link);
    struct results results = {0};
    struct miba m = {.link = link, .results = &results};
    int exit_status = EXIT_DONE;

    if (!o || !link)
        return said(&(struct miba_why){"no memory"}, EXIT_FAILED);
    link->fd = -1;
    options_read(o, argc, argv);
    m.set = o->set;
    if (o->list)
        list();
    else if (o->help_test)
        about(o->help_test, &o->set);
    else
        exit_status = run(&m, o);
    if (fflush(stdout) && exit_status == EXIT_DONE)
        exit_status = EXIT_FAILED;
    free(o);
    free(link);
    return exit_status;
}

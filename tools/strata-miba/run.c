/* The leading side's way through all cases. */
#include "config.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report.h"
#include "resume.h"
#include "silence.h"

#define QUIET_NS 2000000000u /* what is over sooner has no progress */
#define EVERY_NS 1000000000u

struct walk {
    struct miba *m;
    const struct miba_case *now;
    const struct options *o;
    unsigned all, before; /* cases; those that came before this one */
    uint64_t begin, said; /* when a line of progress was printed last */
    struct silence quiet; /* of the other side */
    unsigned run;
    bool failed;
};

static json_t *about_run(const struct miba *m)
{
    json_t *settings = settings_json(&m->set, false);

    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:i, s:i, s:i, s:o}", "tool", "strata-miba", "version",
                     PACKAGE_VERSION, "device", m->dev.name, "port", (int)m->dev.port_number, "firmware",
                     m->dev.attr.fw_ver, "link",
                     m->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", "mtu",
                     (int)device_mtu(&m->dev, &m->set), "gid_index", m->dev.gid_index, "processors", (int)m->processors,
                     "settings", settings);
}

static void progress(struct walk *w)
{
    const uint64_t now = miba_now(), spent = now - w->begin;
    char text[160], left[48] = "";

    if (!w->o->progress || spent < QUIET_NS || now - w->said < EVERY_NS)
        return;
    w->said = now;
    case_text(w->now, text, sizeof text);
    if (w->run)
        snprintf(left, sizeof left, "; about %.0f s to go", (double)spent / 1e9 * (w->all - w->before) / w->run);
    fprintf(stderr, "strata-miba: %u of %u cases, now %s%s\n", w->before, w->all, text, left);
}

/* Between cases, and between the samples of one: a test in which the other side takes no part may go on for long. */
static enum miba_status between(void *arg)
{
    struct walk *w = arg;

    progress(w);
    return link_watch(w->m->link, &w->quiet, &w->m->why);
}

static int count(void *arg, const struct miba_case *c)
{
    (void)c;
    ++*(unsigned *)arg;
    return 0;
}

static int visit(void *arg, const struct miba_case *c)
{
    struct walk *w = arg;
    bool failed = false;

    if (resume_has(w->m->results, c)) {
        w->before++;
        return 0;
    }
    w->now = c;
    enum miba_status status = between(w);
    if (!status)
        status = lead_case(w->m, c, &failed);
    w->failed |= failed;
    w->before++;
    w->run++;
    return (int)status;
}

static enum miba_status walk_tests(struct walk *w)
{
    const struct options *o = w->o;
    int stop = 0;

    for (unsigned i = 0; i < o->n_tests; i++)
        cases_visit(o->tests[i], &w->m->set, count, &w->all);
    for (unsigned i = 0; !stop && i < o->n_tests; i++)
        stop = cases_visit(o->tests[i], &w->m->set, visit, w);
    return (enum miba_status)stop;
}

/* Progress and the look at the other side go on between the samples of a case. */
static void walk_watch(struct walk *w)
{
    w->m->between_samples = between;
    w->m->between_arg = w;
}

int run_tests(struct miba *m, const struct options *o)
{
    struct walk w = {.m = m, .o = o, .begin = miba_now()};
    json_t *about = about_run(m);
    enum miba_status status = o->resume ? resume_load(m->results, o->output, about, &m->why) : MIBA_OK;
    int exit_status;

    walk_watch(&w);
    if (m->child > 0 && m->processors < 2)
        m->results->mark = "scheduler, not adapter: both sides share one processor";
    if (status) {
        fprintf(stderr, "strata-miba: %s\n", m->why.text);
        json_decref(about);
        return EXIT_USER;
    }
    status = results_open(m->results, o->output, o->form, &m->why);
    if (!status)
        status = results_begin(m->results, about, &m->why);
    if (!status)
        status = walk_tests(&w);
    m->between_samples = NULL;
    exit_status = status || w.failed ? EXIT_FAILED : EXIT_DONE;
    if (status)
        fprintf(stderr, "strata-miba: %s\n", m->why.text);
    if (!status && w.all == 0)
        fprintf(stderr, "strata-miba: the tests have no case with these operations and transports\n");
    if (thresholds_check(o->thresholds, o->n_thresholds, m->results) && exit_status == EXIT_DONE)
        exit_status = EXIT_BEYOND;
    const struct miba_why why = m->why;
    if (!results_end(m->results, exit_status, status ? why.text : NULL))
        exit_status = EXIT_FAILED;
    if (o->report && !report_write(o->report, m->results, about, status ? why.text : NULL))
        exit_status = EXIT_FAILED;
    results_free(m->results);
    json_decref(about);
    return exit_status;
}

/* strata-miba: what a verbs device costs, component by component. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "report.h"
#include "resume.h"
#include "run.h"

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

static int said(const struct miba_why *why, int status)
{
    fprintf(stderr, "strata-miba: %s\n", why->text);
    return status;
}

/* Before the other side is bothered: a folder for the report, a file that can be opened. What it holds stays. */
static bool output_is_writable(const struct options *o, struct miba_why *why)
{
    if (o->report && mkdir(o->report, 0777) && errno != EEXIST)
        return miba_fail(why, MIBA_BROKEN, "%s: cannot be made: %s", o->report, strerror(errno)) == MIBA_OK;
    if (!o->output)
        return true;
    FILE *f = fopen(o->output, "ae");
    if (!f)
        return miba_fail(why, MIBA_BROKEN, "%s: cannot be written: %s", o->output, strerror(errno)) == MIBA_OK;
    fclose(f);
    return true;
}

/* The report of results that are there. */
static int draw(struct results *r, const struct options *o)
{
    struct miba_why why, early;
    json_t *about = NULL;
    int exit_status = EXIT_DONE;

    if (resume_read(r, o->output, &about, &early, &why))
        exit_status = said(&why, EXIT_USER);
    else if (!report_write(o->report, r, about, *early.text ? early.text : NULL))
        exit_status = EXIT_FAILED;
    results_free(r);
    json_decref(about);
    return exit_status;
}

static int run(struct miba *m, const struct options *o)
{
    enum miba_status status = MIBA_OK;
    int exit_status;

    if (!o->session.server && !output_is_writable(o, &m->why))
        return said(&m->why, EXIT_FAILED);
    status = session_begin(m, &o->session);
    if (status)
        return said(&m->why, status == MIBA_LOST ? EXIT_FAILED : EXIT_USER);
    status = device_open(&m->dev, &m->set, &m->why);
    if (status) {
        exit_status = said(&m->why, EXIT_USER);
        link_end(m->link); /* without a word, so that the other side does not say the same */
    } else {
        exit_status = EXIT_DONE;
        if (m->leads)
            exit_status = run_tests(m, o);
        else if (follow(m))
            exit_status = said(&m->why, EXIT_FAILED);
        device_close(&m->dev);
    }
    const bool child_well = session_end(m);
    if (m->why.text[0])
        exit_status = said(&m->why, EXIT_FAILED);
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
    else if (o->draw)
        exit_status = draw(&results, o);
    else
        exit_status = run(&m, o);
    if (fflush(stdout) && exit_status == EXIT_DONE)
        exit_status = EXIT_FAILED;
    free(o);
    free(link);
    return exit_status;
}

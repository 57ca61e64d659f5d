/* Results of a run: kept, and written as they come. */
#include "config.h"
#include "results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test.h"

enum miba_status results_open(struct results *r, const char *path, enum results_form form, struct miba_why *why)
{
    r->out = stdout;
    r->path = path;
    r->form = form;
    if (!path)
        return MIBA_OK;
    if (r->n && asprintf(&r->beside, "%s.new", path) < 0)
        r->beside = NULL;
    r->out = fopen(r->beside ? r->beside : path, "we");
    if (!r->out) {
        r->broken = true;
        return miba_fail(why, MIBA_BROKEN, "%s: cannot be written: %s", r->beside ? r->beside : path, strerror(errno));
    }
    return MIBA_OK;
}

/* The results of the earlier run are in the new file: it becomes the file of results. */
static enum miba_status take_place(struct results *r, struct miba_why *why)
{
    enum miba_status status = MIBA_OK;

    if (fsync(fileno(r->out)) || rename(r->beside, r->path)) {
        r->broken = true;
        status = miba_fail(why, MIBA_BROKEN, "%s: results cannot be written: %s", r->path, strerror(errno));
        unlink(r->beside);
    }
    free(r->beside);
    r->beside = NULL;
    return status;
}

static enum miba_status flush(struct results *r, struct miba_why *why)
{
    errno = 0;
    if (fflush(r->out) == 0 && !ferror(r->out))
        return MIBA_OK;
    r->broken = true;
    return miba_fail(why, MIBA_BROKEN, "%s: results cannot be written: %s", r->path ? r->path : "standard output",
                     strerror(errno ? errno : EIO));
}

static void line_of_json(FILE *f, json_t *line)
{
    json_dumpf(line, f, JSON_COMPACT | JSON_REAL_PRECISION(17));
    fputc('\n', f);
    json_decref(line);
}

static void print(struct results *r, const struct result *one)
{
    if (r->form == FORM_JSON)
        line_of_json(r->out, result_json(one));
    else if (r->form == FORM_CSV)
        print_csv(r->out, one);
    else
        print_text(r->out, one);
}

enum miba_status results_begin(struct results *r, const json_t *about, struct miba_why *why)
{
    if (r->form == FORM_JSON) {
        json_dumpf(about, r->out, JSON_COMPACT);
        fputc('\n', r->out);
    } else if (r->form == FORM_CSV) {
        print_csv_header(r->out);
    } else {
        fprintf(r->out, "# strata-miba %s on %s port %lld; times: median (quartiles, samples)\n",
                json_string_value(json_object_get(about, "version")),
                json_string_value(json_object_get(about, "device")),
                (long long)json_integer_value(json_object_get(about, "port")));
    }
    for (size_t i = 0; i < r->n; i++)
        print(r, &r->all[i]);
    const enum miba_status status = flush(r, why);
    if (!status && r->beside)
        return take_place(r, why);
    return status;
}

enum miba_status results_keep(struct results *r, const struct result *result, struct miba_why *why)
{
    if (r->n == r->room) {
        const size_t room = r->room ? 2 * r->room : 64;
        struct result *more = realloc(r->all, room * sizeof *more);
        if (!more)
            return miba_fail(why, MIBA_BROKEN, "no memory for results");
        r->all = more;
        r->room = room;
    }
    r->all[r->n++] = *result;
    return MIBA_OK;
}

#define MOST_NAMES 256u

const char *results_keep_name(struct results *r, const char *name)
{
    if (!r->names)
        r->names = calloc(MOST_NAMES, sizeof *r->names);
    for (size_t i = 0; r->names && i < r->n_names; i++)
        if (strcmp(r->names[i], name) == 0)
            return r->names[i];
    if (!r->names || r->n_names == MOST_NAMES)
        return "?";
    snprintf(r->names[r->n_names], sizeof *r->names, "%s", name);
    return r->names[r->n_names++];
}

void results_free(struct results *r)
{
    free(r->all);
    free(r->names);
    r->all = NULL;
    r->names = NULL;
}

enum miba_status results_add(struct results *r, const struct result *result, struct miba_why *why)
{
    struct result one = *result;

    if (r->mark && one.c.op != OP_NONE && !one.status && !one.marked) {
        one.marked = true;
        miba_fail(&one.why, MIBA_OK, "%s", r->mark);
    }
    if (one.unit == UNIT_NS && !one.status && !one.marked && one.sum.median < 0) {
        one.marked = true;
        miba_fail(&one.why, MIBA_OK, "less than the noise of this machine");
    }
    const enum miba_status status = results_keep(r, &one, why);
    if (status)
        return status;
    print(r, &one);
    return flush(r, why);
}

enum miba_status results_samples(struct results *r, const struct miba_case *c, const char *figure, enum unit unit,
                                 const struct samples *s, struct miba_why *why)
{
    const struct result one = {.c = *c, .figure = figure, .unit = unit, .sum = samples_summary(s)};

    return results_add(r, &one, why);
}

/* What was measured is not lost with the file. */
static void rescue(const struct results *r)
{
    FILE *f = r->path ? stdout : stderr;

    fprintf(f, "# results that were measured until then:\n");
    for (size_t i = 0; i < r->n; i++)
        print_text(f, &r->all[i]);
    fflush(f);
}

bool results_end(struct results *r, int exit_status, const char *error)
{
    struct miba_why why;

    if (!r->broken && r->form == FORM_JSON) {
        json_t *last = json_pack("{s:i, s:I}", "status", exit_status, "results", (json_int_t)r->n);
        if (error)
            json_object_set_new(last, "error", json_string(error));
        line_of_json(r->out, last);
    }
    if (!r->broken && flush(r, &why))
        fprintf(stderr, "strata-miba: %s\n", why.text);
    if (!r->broken && r->path && (fsync(fileno(r->out)) != 0 && errno != EINVAL && errno != EROFS)) {
        r->broken = true;
        fprintf(stderr, "strata-miba: %s: results cannot be written: %s\n", r->path, strerror(errno));
    }
    if (r->broken && r->n)
        rescue(r);
    if (r->path && r->out)
        fclose(r->out);
    if (r->beside)
        unlink(r->beside);
    free(r->beside);
    r->beside = NULL;
    return !r->broken;
}

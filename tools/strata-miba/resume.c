/* Going on with a run that was ended. */
#include "config.h"
#include "resume.h"

#include <errno.h>
#include <string.h>
#include "test.h"

/* After the names of enum miba_status. */
#define MARKED (MIBA_BROKEN + 1u)

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static bool same(const struct miba_case *a, const struct miba_case *b)
{
    return a->test == b->test && a->op == b->op && a->transport == b->transport && a->variant == b->variant &&
           a->x == b->x && a->size == b->size;
}

bool resume_has(const struct results *r, const struct miba_case *c)
{
    for (size_t i = 0; i < r->n_resumed; i++)
        if (same(&r->all[i].c, c))
            return true;
    return false;
}

/* False: not a result. */
static bool take(const json_t *o, struct result *r)
{
    static const char *const statuses[] = {"ok", "unsupported", "skipped", "failed", "peer lost", "broken", "marked"};
    const char *status = text_of(o, "status");
    unsigned i = 0;

    *r = (struct result){.c = {.test = miba_test_of(text_of(o, "test")),
                               .op = miba_op_of(text_of(o, "op")),
                               .transport = miba_transport_of(text_of(o, "transport")),
                               .x = (uint64_t)json_integer_value(json_object_get(o, "value")),
                               .size = (uint32_t)json_integer_value(json_object_get(o, "size"))}};
    while (i <= MARKED && strcmp(status, statuses[i]) != 0)
        i++;
    if (!r->c.test || r->c.op >= OPS || r->c.transport >= TRANSPORTS || i > MARKED)
        return false;
    r->marked = i == MARKED;
    r->status = r->marked ? MIBA_OK : (enum miba_status)i;
    for (int v = 0; r->c.test->variants && r->c.test->variants[v]; v++)
        if (strcmp(r->c.test->variants[v], text_of(o, "variant")) == 0)
            r->c.variant = v;
    for (int u = UNIT_NS; u <= UNIT_COUNT; u++)
        if (strcmp(unit_name((enum unit)u), text_of(o, "unit")) == 0)
            r->unit = (enum unit)u;
    r->sum = (struct summary){.median = json_number_value(json_object_get(o, "median")),
                              .q1 = json_number_value(json_object_get(o, "q1")),
                              .q3 = json_number_value(json_object_get(o, "q3")),
                              .min = json_number_value(json_object_get(o, "min")),
                              .max = json_number_value(json_object_get(o, "max")),
                              .n = (unsigned)json_integer_value(json_object_get(o, "samples"))};
    miba_fail(&r->why, MIBA_OK, "%s", text_of(o, "reason"));
    return true;
}

/* A run that goes on has its own object about the device and the settings; a report takes that of the file. */
struct reader {
    struct results *r;
    const char *path;
    const json_t *about; /* NULL: any */
    json_t *found;
    struct miba_why early; /* why the run ended before all was measured; empty: it did not */
};

static enum miba_status take_line(struct reader *reader, const char *line, bool first, struct miba_why *why)
{
    json_t *o = json_loads(line, 0, NULL);
    enum miba_status status = MIBA_OK;
    struct result one;

    if (first && reader->about && !json_equal(o, reader->about)) {
        status = miba_fail(why, MIBA_BROKEN,
                           "%s: is not of this device, port, version and these settings: it cannot be resumed",
                           reader->path);
    } else if (first && !json_object_get(o, "settings")) {
        status = miba_fail(why, MIBA_BROKEN, "%s: is no file of strata-miba's results", reader->path);
    } else if (first) {
        reader->found = json_incref(o);
    } else if (json_object_get(o, "figure") && take(o, &one) && (!reader->about || one.status < MIBA_FAILED)) {
        one.figure = results_keep_name(reader->r, text_of(o, "figure"));
        status = results_keep(reader->r, &one, why);
    }
    if (json_object_get(o, "results"))
        miba_fail(&reader->early, MIBA_OK, "%s", text_of(o, "error"));
    json_decref(o);
    return status;
}

static enum miba_status take_file(struct reader *reader, FILE *f, struct miba_why *why)
{
    char line[4096];
    bool first = true;
    enum miba_status status = MIBA_OK;

    while (!status && fgets(line, sizeof line, f)) {
        /* A run that was cut within its first line has no results. */
        if (first && reader->about && !strchr(line, '\n'))
            break;
        status = take_line(reader, line, first, why);
        first = false;
    }
    fclose(f);
    return status;
}

enum miba_status resume_load(struct results *r, const char *path, const json_t *about, struct miba_why *why)
{
    struct reader reader = {.r = r, .path = path, .about = about};
    FILE *f = fopen(path, "re");

    if (!f && errno == ENOENT)
        return MIBA_OK;
    if (!f)
        return miba_fail(why, MIBA_BROKEN, "%s: %s", path, strerror(errno));
    const enum miba_status status = take_file(&reader, f, why);
    json_decref(reader.found);
    /* The last case may lack figures. */
    if (r->n) {
        const struct miba_case last = r->all[r->n - 1].c;
        while (r->n && same(&r->all[r->n - 1].c, &last))
            r->n--;
    }
    r->n_resumed = r->n;
    return status;
}

enum miba_status resume_read(struct results *r, const char *path, json_t **about, struct miba_why *early,
                             struct miba_why *why)
{
    struct reader reader = {.r = r, .path = path, .early = {"the results have no last line"}};
    FILE *f = fopen(path, "re");

    if (!f)
        return miba_fail(why, MIBA_BROKEN, "%s: %s", path, strerror(errno));
    const enum miba_status status = take_file(&reader, f, why);
    *about = reader.found;
    *early = reader.early;
    if (!status && !*about)
        return miba_fail(why, MIBA_BROKEN, "%s: has no results", path);
    return status;
}

/* Text and JSON. A line is written at once, so that it is there when the job is ended. */
#include "report.h"
#include "options.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const words[CONF_RESULTS] = {"passed", "failed", "left out"};

static void put_json(json_t *j)
{
    char *text = json_dumps(j, JSON_COMPACT);

    if (text)
        printf("%s\n", text);
    free(text);
    json_decref(j);
    fflush(stdout);
}

/* NULL is left out. */
static void put_string(json_t *j, const char *key, const char *value)
{
    if (value)
        json_object_set_new(j, key, json_string(value));
}

void report_case(struct report *r, const struct conf_case *c, const char *transport, enum conf_result result,
                 const char *reason)
{
    r->n[result]++;
    if (r->silent && result != CONF_FAILED)
        return;
    if (r->json) {
        json_t *j = json_pack("{s:s, s:s}", "case", c->name, "result", words[result]);
        put_string(j, "transport", transport);
        put_string(j, "reason", reason);
        put_json(j);
        return;
    }
    printf("%-8s %s%s%s%s%s\n", words[result], c->name, transport ? " over " : "", transport ? transport : "",
           reason ? ": " : "", reason ? reason : "");
    fflush(stdout);
}

int report_end(const struct report *r)
{
    const unsigned *n = r->n;
    int status = n[CONF_FAILED] ? EXIT_CASE_FAILED : n[CONF_PASSED] ? EXIT_PASSED : EXIT_NONE_RAN;

    if (r->silent && !n[CONF_FAILED])
        return status;
    if (r->json)
        put_json(json_pack("{s:i, s:i, s:i, s:s, s:i}", "passed", (int)n[CONF_PASSED], "failed", (int)n[CONF_FAILED],
                           "left_out", (int)n[CONF_LEFT_OUT], "ranks", r->ranks, "status", status));
    else
        printf("%u cases passed, %u failed, %u left out; ranks: %s\n", n[CONF_PASSED], n[CONF_FAILED], n[CONF_LEFT_OUT],
               r->ranks);
    fflush(stdout);
    return status;
}

void report_list(bool json, const struct conf_case *c)
{
    bool fixed = c->ranks == c->most;

    if (json)
        put_json(json_pack("{s:s, s:i, s:b, s:b}", "case", c->name, "ranks", c->ranks, "more_ranks", !fixed,
                           "processes", c->processes));
    else
        printf("%-44s %d%s ranks, %s\n", c->name, c->ranks, fixed ? "" : " or more",
               c->processes ? "processes or threads" : "threads");
}

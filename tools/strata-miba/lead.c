/* The leading side of a case. */
#include "config.h"
#include "sides.h"

#include <stdlib.h>
#include <string.h>
#include "pattern.h"

/* What is said when there is no result. */
static enum miba_status report_none(struct miba *m, const struct miba_case *c, enum miba_status status)
{
    struct result r = {.c = *c, .figure = c->test->name, .status = status, .why = m->why};

    return results_add(m->results, &r, &m->why);
}

enum miba_status sides_take_refusal(struct miba *m, const char *line, const char *who)
{
    unsigned status;
    int n = 0;

    if (sscanf(line, "not %u %n", &status, &n) < 1 || n == 0 || status == MIBA_OK || status >= MIBA_LOST)
        return miba_fail(&m->why, MIBA_BROKEN, "%s says \"%.80s\", which is not understood", who, line);
    return miba_fail(&m->why, (enum miba_status)status, "%s: %.200s", who, line + n);
}

/* The other side's line, which has to start with `word`. */
static enum miba_status hear(struct miba *m, char *line, const char *word)
{
    const enum miba_status status = link_hear(m->link, line, false, &m->why);

    if (status || strncmp(line, word, strlen(word)) == 0)
        return status;
    return sides_take_refusal(m, line, "the other side");
}

/* Both sides build and connect. `endpoint` is there, and `*made` set, even when the other side could not. */
static enum miba_status meet(struct miba *m, struct endpoint *e, const struct traffic *t, bool *made)
{
    char line[LINE_MOST], own[LINE_MOST];
    enum miba_status own_status = endpoint_make(e, m, t);
    const struct miba_why own_why = m->why;

    *made = own_status == MIBA_OK;
    enum miba_status status = hear(m, line, "info ");
    if (status)
        goto theirs;
    if (own_status) {
        if (link_say(m->link, &m->why, "not %d %s", (int)own_status, own_why.text))
            return MIBA_LOST;
        m->why = own_why;
        return own_status;
    }
    if (!endpoint_take_info(e, line))
        return miba_fail(&m->why, MIBA_BROKEN, "the other side's address is not understood: \"%.80s\"", line);
    endpoint_info(e, own, sizeof own);
    status = link_say(m->link, &m->why, "%s", own);
    own_status = status ? status : endpoint_connect(e);
    const struct miba_why connect_why = m->why;
    if (!status)
        status = hear(m, line, "connected");
    if (status)
        return status;
    m->why = connect_why;
    return own_status;
theirs:
    if (own_status && status < MIBA_LOST)
        m->why = own_why;
    return status;
}

static enum miba_status lead_traffic(struct miba *m, const struct miba_case *c)
{
    struct traffic t;
    struct endpoint *e;
    bool made = false;
    enum miba_status status = c->test->shape(m, c, &t);

    if (status)
        return status;
    e = calloc(1, sizeof *e);
    if (!e)
        return miba_fail(&m->why, MIBA_BROKEN, "no memory for an endpoint");
    status = link_say(m->link, &m->why, "case %s %s %s %d %llu %u", c->test->name, miba_op_name(c->op),
                      miba_transport_name(c->transport), c->variant, (unsigned long long)c->x, c->size);
    if (!status) {
        status = meet(m, e, &t, &made);
        if (!status)
            status = c->test->lead ? c->test->lead(m, c, e) : pattern_lead(m, c, e);
        if (status < MIBA_LOST) {
            /* The other side holds its endpoint until then. What `meet` did not reach needs no end. */
            const struct miba_why why = m->why;
            const enum miba_status said = link_say(m->link, &m->why, "end");
            status = said ? said : status;
            m->why = said ? m->why : why;
        }
    }
    if (made)
        endpoint_destroy(e);
    free(e);
    return status;
}

enum miba_status lead_case(struct miba *m, const struct miba_case *c, bool *failed)
{
    enum miba_status status = c->test->local ? c->test->local(m, c) : lead_traffic(m, c);

    if (status == MIBA_OK)
        return MIBA_OK;
    *failed = status >= MIBA_FAILED;
    if (status == MIBA_BROKEN)
        return status;
    const struct miba_why why = m->why;
    const enum miba_status said = report_none(m, c, status);
    if (said)
        return said;
    m->why = why;
    return status == MIBA_LOST ? MIBA_LOST : MIBA_OK;
}

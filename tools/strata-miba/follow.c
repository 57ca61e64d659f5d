/* The side that follows: builds what a case needs, and takes part in its batches. */
#include "config.h"
#include "sides.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pattern.h"

/* "case NAME OP TRANSPORT VARIANT VALUE SIZE" */
static bool take_case(const char *line, struct miba_case *c)
{
    char name[32], op[32], transport[32];
    int variant;
    unsigned long long x;
    unsigned size;

    if (sscanf(line, "case %31s %31s %31s %d %llu %u", name, op, transport, &variant, &x, &size) != 6)
        return false;
    *c = (struct miba_case){.test = miba_test_of(name),
                            .op = miba_op_of(op),
                            .transport = miba_transport_of(transport),
                            .variant = variant,
                            .x = x,
                            .size = size};
    if (!c->test || !c->test->shape || c->op >= OPS || c->transport >= TRANSPORTS || variant < 0)
        return false;
    for (int i = 0; c->test->variants && i <= variant; i++)
        if (!c->test->variants[i])
            return false;
    return true;
}

static enum miba_status refuse(struct miba *m, enum miba_status status)
{
    return status >= MIBA_LOST ? status : link_say(m->link, &m->why, "not %d %s", (int)status, m->why.text);
}

static enum miba_status one_batch(struct miba *m, struct endpoint *e, unsigned n)
{
    char line[LINE_MOST];
    uint64_t ns;
    uint32_t arrived;
    enum miba_status status = link_say(m->link, &m->why, "ready");

    if (status)
        return status;
    status = pattern_follow(e, n, &ns, &arrived);
    if (status >= MIBA_LOST)
        return status;
    /* One answer for each batch: a failure at once, which ends the leading side's loop, too. */
    const bool failed = status != MIBA_OK;
    if (failed)
        status = link_say(m->link, &m->why, "failed %s", m->why.text);
    if (!status)
        status = link_hear(m->link, line, true, &m->why);
    if (status)
        return status;
    if (strcmp(line, "stop") != 0)
        return miba_fail(&m->why, MIBA_BROKEN, "the leading side says \"%.80s\" in a batch", line);
    return failed ? MIBA_OK : link_say(m->link, &m->why, "done %" PRIu64 " %" PRIu32, ns, arrived);
}

/* Until the leading side ends the case. */
static enum miba_status batches(struct miba *m, struct endpoint *e)
{
    char line[LINE_MOST];

    for (;;) {
        unsigned n;
        enum miba_status status = link_hear(m->link, line, true, &m->why);
        if (!status && strcmp(line, "end") == 0)
            return MIBA_OK;
        if (!status && sscanf(line, "batch %u", &n) == 1)
            status = one_batch(m, e, n);
        else if (!status)
            status = miba_fail(&m->why, MIBA_BROKEN, "the leading side says \"%.80s\", which is not understood", line);
        if (status)
            return status;
    }
}

/* An endpoint that could not be made or connected: the leading side ends the case by itself. */
static enum miba_status hear_end(struct miba *m)
{
    char line[LINE_MOST];
    const enum miba_status status = link_hear(m->link, line, true, &m->why);

    if (!status && strcmp(line, "end") != 0)
        return miba_fail(&m->why, MIBA_BROKEN, "the leading side says \"%.80s\" and not the end of the case", line);
    return status;
}

static enum miba_status connected_case(struct miba *m, struct endpoint *e)
{
    char line[LINE_MOST];

    endpoint_info(e, line, sizeof line);
    enum miba_status status = link_say(m->link, &m->why, "%s", line);
    if (!status)
        status = link_hear(m->link, line, false, &m->why);
    if (status)
        return status;
    if (strncmp(line, "not ", 4) == 0)
        return hear_end(m);
    if (!endpoint_take_info(e, line))
        return miba_fail(&m->why, MIBA_BROKEN, "the leading side's address is not understood: \"%.80s\"", line);
    status = endpoint_connect(e);
    if (status) {
        status = refuse(m, status);
        return status ? status : hear_end(m);
    }
    status = link_say(m->link, &m->why, "connected");
    return status ? status : batches(m, e);
}

static enum miba_status follow_case(struct miba *m, const struct miba_case *c)
{
    struct traffic t;
    struct endpoint *e = calloc(1, sizeof *e);

    if (!e)
        return miba_fail(&m->why, MIBA_BROKEN, "no memory for an endpoint");
    enum miba_status status = c->test->shape(m, c, &t);
    if (!status)
        status = endpoint_make(e, m, &t);
    if (status) {
        status = refuse(m, status);
        if (!status)
            status = hear_end(m);
    } else {
        status = connected_case(m, e);
        endpoint_destroy(e);
    }
    free(e);
    return status;
}

enum miba_status follow(struct miba *m)
{
    char line[LINE_MOST];

    for (;;) {
        struct miba_case c;
        enum miba_status status = link_hear(m->link, line, true, &m->why);
        if (status)
            return status;
        if (strcmp(line, "bye") == 0)
            return MIBA_OK;
        if (!take_case(line, &c))
            return miba_fail(&m->why, MIBA_BROKEN, "the leading side says \"%.80s\", which is not understood", line);
        status = follow_case(m, &c);
        if (status)
            return status;
    }
}

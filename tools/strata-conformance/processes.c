/* The cases with processes for ranks. */
#include "run.h"
#include "support/btl_suite.h"
#include "support/over_suite.h"
#include "support/watchdog.h"
#include "support/way.h"
#include <strata/sdk/pml.h>
#include <unistd.h>

/* What a failure that ends the process has to tell. */
static struct {
    struct report report;
    const struct conf_case *c;
    const char *transport;
} now;

static void failed(const char *text)
{
    if (!now.c)
        return;
    report_case(&now.report, now.c, now.transport, CONF_FAILED, text);
    report_end(&now.report);
}

bool run_launched(void)
{
    return getenv("PMIX_RANK") != NULL;
}

/* Why the case cannot be run by these ranks, or NULL. */
static const char *misfit(const struct conf_case *c, const struct tw_rank *r, char *text, size_t size)
{
    int n = r->n;
    const char *more = c->most == c->ranks ? "" : " or more";

    /* A job of one rank tests the transport to itself. */
    if (c->transport && n == 1)
        return NULL;
    if (!c->processes)
        snprintf(text, size, "its ranks must be threads");
    else if (n < c->ranks || n > c->most)
        snprintf(text, size, "for %d%s ranks", c->ranks, more);
    else if (c->puts && !way_puts(r, (r->rank + 1) % n)) /* all ways put, or none does */
        snprintf(text, size, "the transport cannot put");
    else
        return NULL;
    return text;
}

static bool reaches_all(struct st_btl *btl, const struct tw_rank *r)
{
    for (int p = 0; p < r->n; p++)
        if ((p != r->rank || r->n == 1) && btl->ops->reach(btl, p) != STRATA_OK)
            return false;
    return true;
}

/* The first rank that nothing reaches, or -1. */
static int unreached(const struct tw_rank *r)
{
    for (int p = 0; p < r->n; p++) {
        bool reached = false;
        for (size_t i = 0; i < r->s->n_btls && !reached; i++)
            reached = r->s->btls[i]->ops->reach(r->s->btls[i], p) == STRATA_OK;
        if (!reached)
            return p;
    }
    return -1;
}

static void begin(const struct options *o, const struct conf_case *c, const char *transport, struct watchdog **dog)
{
    now.c = c;
    now.transport = transport;
    *dog = watchdog_start(o->timeout_s, 1);
}

static void end(struct watchdog *dog, struct tw_rank *r)
{
    CHECK_OK(strata_fence(r->s));
    watchdog_stop(dog);
    report_case(&now.report, now.c, now.transport, CONF_PASSED, NULL);
    now.c = NULL;
}

/* Over each component that reaches all ranks, rails once. */
static void run_contract(const struct options *o, const struct conf_case *c, struct tw_rank *r)
{
    struct watchdog *dog;
    int ran = 0;

    for (size_t i = 0; i < r->s->n_btls; i++) {
        struct st_btl *btl = r->s->btls[i];
        const char *name = btl->component->name;
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= r->s->btls[k]->component == btl->component;
        if (seen || !reaches_all(btl, r))
            continue;
        begin(o, c, name, &dog);
        btl_case_join(c->transport, name, r);
        end(dog, r);
        ran++;
    }
    if (!ran)
        report_case(&now.report, c, NULL, CONF_LEFT_OUT, "no transport reaches every rank");
}

static void run_case(const struct options *o, const struct conf_case *c, struct tw_rank *r)
{
    struct watchdog *dog;
    char text[80];
    const char *why = misfit(c, r, text, sizeof text);

    if (why) {
        report_case(&now.report, c, NULL, CONF_LEFT_OUT, why);
        return;
    }
    if (c->transport) {
        run_contract(o, c, r);
        return;
    }
    begin(o, c, NULL, &dog);
    r->arg = (void *)(uintptr_t) "";
    if (c->client)
        c->client->body(r);
    else if (r->rank < c->ranks)
        c->message->body(r);
    end(dog, r);
}

int run_processes(const struct options *o, const struct conf_case *cases, size_t n)
{
    char err[1024] = "", ranks[32];
    strata_config_t config = STRATA_CONFIG_INIT;
    struct tw_rank r = {0};

    config.thread_level = STRATA_THREAD_MULTIPLE;
    config.settings = o->settings;
    config.n_settings = o->n_settings;
    config.error_text = err;
    config.error_text_size = sizeof err;
    if (strata_init(&config, &r.s) != STRATA_OK) {
        fprintf(stderr, "strata-conformance: Strata does not start: %s\n", err);
        return EXIT_USER;
    }
    r.comm = strata_world(r.s);
    r.rank = strata_rank(r.s);
    r.n = strata_size(r.s);
    snprintf(ranks, sizeof ranks, "%d processes", r.n);
    now.report = (struct report){.json = o->json, .silent = r.rank != 0, .ranks = ranks};
    watchdog_name_thread(r.rank);
    int alone = unreached(&r);
    if (alone >= 0) {
        fprintf(stderr, "strata-conformance: no transport that is open reaches rank %d from rank %d\n", alone, r.rank);
        return EXIT_USER;
    }
    test_on_failure(failed);
    for (size_t i = 0; i < n; i++)
        if (options_select(o, cases[i].name))
            run_case(o, &cases[i], &r);
    int rc = strata_finalize(r.s);
    if (rc != STRATA_OK) {
        fprintf(stderr, "strata-conformance: strata_finalize: %s\n", strata_strerror(rc));
        return EXIT_CASE_FAILED;
    }
    return report_end(&now.report);
}

/* strata-perf: what messages cost over Strata. */
#define _GNU_SOURCE 1
#include "port_strata.h"

#include "commands.h"
#include "loops.h"

/* ---- memory: the library's own account, summed over the ranks ------------------------------------------- */

enum { MAX_LINES = 48 };

struct account {
    size_t n;
    struct {
        char who[40];
        double bytes;
        int shared;
    } line[MAX_LINES];
};

static void account_line(void *arg, const strata_mem_line_t *line)
{
    struct account *a = arg;
    char who[40];
    snprintf(who, sizeof who, "%s %s", line->component, line->category);
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->line[i].who, who) == 0 && a->line[i].shared == line->shared) {
            a->line[i].bytes += (double)line->bytes;
            return;
        }
    if (a->n == MAX_LINES)
        return;
    memcpy(a->line[a->n].who, who, sizeof who);
    a->line[a->n].bytes = (double)line->bytes;
    a->line[a->n++].shared = line->shared;
}

/* Ranks run the same components, so rank 0's lines are everybody's; a rank that lacks one adds nothing to it. */
static void memory_lines(struct loops *l)
{
    struct account a = {.n = 0}, first;
    port_ok(l->p, "strata_mem_report", strata_mem_report(l->p->s, account_line, &a));
    first = a;
    for (int r = 1; r < l->p->n; r++) {
        if (l->p->rank == 0)
            port_send(l->p, &first, sizeof first, r, TAG_ACK);
        else if (l->p->rank == r)
            port_recv(l->p, &first, sizeof first, 0, TAG_ACK);
    }
    for (size_t i = 0; i < first.n; i++) {
        double mine = 0;
        char kind[64];
        for (size_t k = 0; k < a.n; k++)
            if (strcmp(a.line[k].who, first.line[i].who) == 0 && a.line[k].shared == first.line[i].shared)
                mine = a.line[k].bytes;
        snprintf(kind, sizeof kind, "%s%s", first.line[i].who, first.line[i].shared ? " (shared)" : "");
        show_ranks(l, kind, "kB", mine * 1e-3);
    }
}

/* ---- a rank of a job ---------------------------------------------------------------------------------------- */

int perf_open_context(const struct perf_options *o, const struct strata_host *host, strata_t **out)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_setting_t settings[PERF_MAX_MCA];
    char why[1024] = "";
    for (size_t i = 0; i < o->n_mca; i++)
        settings[i] = (strata_setting_t){o->mca[i].name, o->mca[i].value};
    config.command_line = settings;
    config.n_command_line = o->n_mca;
    config.host = host;
    config.error_text = why;
    config.error_text_size = sizeof why;
    int rc = strata_init(&config, out);
    if (rc != STRATA_OK)
        fprintf(stderr, "strata-perf: %s\n", why[0] ? why : strata_strerror(rc));
    return rc == STRATA_ERR_PARAM || rc == STRATA_ERR_NOT_FOUND ? 2 : rc ? 1 : 0;
}

static int run_rank(const struct perf_options *o)
{
    struct port p = {.rank = 0};
    p.t_init = perf_now();
    int rc = perf_open_context(o, NULL, &p.s);
    if (rc)
        return rc;
    p.t_ready = perf_now();
    if (o->test == PERF_MEMORY)
        p.private_after_init = perf_private_memory();
    p.world = strata_world(p.s);
    p.rank = strata_rank(p.s);
    p.n = strata_size(p.s);
    if (p.n < ranks_needed(o->test)) {
        if (p.rank == 0)
            fprintf(stderr, "strata-perf: %s needs %d ranks; start it with strata-run -n %d\n", perf_test_name(o->test),
                    ranks_needed(o->test), ranks_needed(o->test));
        strata_finalize(p.s);
        return 2;
    }
    run_loops(&p, o, memory_lines);
    rc = strata_finalize(p.s);
    if (rc)
        fprintf(stderr, "strata-perf: strata_finalize: %s\n", strata_strerror(rc));
    return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct perf_options o;
    perf_options_parse(argc, argv, false, &o);
    if (o.test == PERF_WORLD)
        return perf_world(&o);
    if (o.test == PERF_COMPARE)
        return perf_compare(&o, argv);
    if (o.test == PERF_CHANNEL)
        return perf_channel(&o);
    return run_rank(&o);
}

/* A context in a simulated world: what do ranks cost that are never spoken to? */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "private_memory.h"
#include "report.h"

struct cost {
    double init;      /* seconds in strata_init */
    double resident;  /* bytes of private memory that strata_init added */
    double allocated; /* bytes that it took from malloc, touched or not */
};

static int host_put(void *user, const char *key, const void *blob, size_t length)
{
    (void)user, (void)key, (void)blob, (void)length;
    return STRATA_OK;
}

static int host_get(void *user, int rank, const char *key, void **blob, size_t *length)
{
    (void)user, (void)rank, (void)key, (void)blob, (void)length;
    return STRATA_ERR_NOT_FOUND;
}

static int host_fence(void *user)
{
    (void)user;
    return STRATA_OK;
}

static const int *host_local_ranks(void *user, int *n)
{
    *n = 1;
    return user;
}

static int host_is_local(void *user, int rank)
{
    return rank == *(const int *)user;
}

static double in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)m.uordblks + (double)m.hblkhd;
}

/* One context made, used (a message to itself) and ended; 0 or the exit status. */
static int one_world(const struct perf_options *o, int n_ranks, struct cost *out)
{
    int self = 0;
    strata_host_t host = {.size = sizeof host,
                          .user = &self,
                          .n_ranks = n_ranks,
                          .job_id = "strata-perf-world",
                          .put = host_put,
                          .get = host_get,
                          .fence = host_fence,
                          .is_local = host_is_local,
                          .local_ranks = host_local_ranks};
    strata_t *s = NULL;
    malloc_trim(0); /* what the last context gave back is not to hide what this one takes */
    double resident = (double)perf_private_memory(), allocated = in_use(), t = perf_now();
    int rc = perf_open_context(o, &host, &s);
    if (rc)
        return rc;
    out->init = perf_now() - t;
    out->resident = (double)perf_private_memory() - resident;
    out->allocated = in_use() - allocated;
    char in[8] = "", text[8] = "itself!";
    strata_request_t *req;
    rc = strata_irecv(strata_world(s), in, sizeof in, 0, 1, &req);
    if (rc == STRATA_OK)
        rc = strata_send(strata_world(s), text, sizeof text, 0, 1);
    if (rc == STRATA_OK)
        rc = strata_wait(&req, STRATA_STATUS_IGNORE);
    if (rc == STRATA_OK && memcmp(in, text, sizeof in) != 0)
        rc = STRATA_ERR_PROTOCOL;
    if (rc != STRATA_OK)
        fprintf(stderr, "strata-perf: world: a message to itself: %s\n", strata_strerror(rc));
    int end = strata_finalize(s);
    if (end != STRATA_OK)
        fprintf(stderr, "strata-perf: world: strata_finalize: %s\n", strata_strerror(end));
    return rc || end ? 1 : 0;
}

int perf_world(const struct perf_options *o)
{
    struct perf_report report;
    struct cost cost = {0, 0, 0}, small = {0, 0, 0};
    double *init = malloc(o->batches * sizeof *init);
    int n_ranks = (int)o->ranks, rc = init ? 0 : 1;
    if (rc)
        fprintf(stderr, "strata-perf: out of memory\n");
    /* The first context of a process loads the plugins, which is no cost of ranks: a world of two goes first. */
    if (!rc)
        rc = one_world(o, 2, &small);
    if (!rc)
        rc = one_world(o, 2, &small);
    if (!rc)
        rc = one_world(o, n_ranks, &cost);
    for (size_t i = 0; !rc && i < o->batches; i++) {
        struct cost again = {0, 0, 0};
        rc = one_world(o, n_ranks, &again);
        init[i] = again.init;
    }
    if (rc) {
        free(init);
        return rc;
    }
    struct perf_summary s = perf_summarise(init, o->batches);
    double resident = cost.resident / n_ranks, allocated = (cost.allocated - small.allocated) / n_ranks;
    perf_report_begin(&report, o, "Strata", n_ranks);
    perf_report_set(&report, "init_s", json_real(s.median));
    perf_report_set(&report, "init_two_ranks_s", json_real(small.init));
    perf_report_set(&report, "resident_bytes", json_real(cost.resident));
    perf_report_set(&report, "resident_bytes_per_rank", json_real(resident));
    perf_report_set(&report, "allocated_bytes_per_rank", json_real(allocated));
    if (!o->json) {
        printf("%-44s %12s %10s\n", "", "measured", "target");
        printf("%-44s %9.3f ms %10s\n", "strata_init", s.median * 1e3, "50 ms");
        printf("%-44s %9.3f ms\n", "strata_init, two ranks", small.init * 1e3);
        printf("%-44s %10.3f B %10s\n", "private memory added, per rank", resident, "8 B");
        printf("%-44s %10.3f B %10s\n", "taken from malloc beyond two ranks, per rank", allocated, "8 B");
        printf("%-44s %9.1f kB\n", "private memory added in all", cost.resident * 1e-3);
    }
    perf_report_end(&report);
    free(init);
    return 0;
}

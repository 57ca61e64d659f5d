/* Memory of real ranks, for tests/footprint. `footprint`: speaks to every rank, then prints the private memory of each
 * rank and the time that its start took, worst first. `footprint report COUNT BYTES`: rank 1 keeps that many unexpected
 * messages and prints what it grew by, according to the kernel and according to strata_mem_report. */
#include <time.h>
#include "support/rollup.h"
#include "support/suite.h"

static long private_kb(void)
{
    return rollup_kb("Private_C") + rollup_kb("Private_D");
}

static void add_private(void *arg, const strata_mem_line_t *line)
{
    if (!line->shared && !line->user)
        *(size_t *)arg += line->bytes;
}

static void report(strata_t *s, int count, size_t len)
{
    strata_comm_t *c = strata_world(s);
    char *b = calloc(1, len + 1);
    size_t before = 0, after = 0;
    CHECK(b);
    private_kb(); /* reading takes memory as well: once before it counts */
    long kb = private_kb();
    CHECK_OK(strata_mem_report(s, add_private, &before));
    if (strata_rank(s) == 0) {
        for (int i = 0; i < count; i++)
            CHECK_OK(strata_send(c, b, len, 1, i));
        suite_await(c, 1, 1);
    } else if (strata_rank(s) == 1) {
        CHECK_OK(strata_probe(c, 0, count - 1, NULL));
        CHECK_OK(strata_mem_report(s, add_private, &after));
        printf("messages %d of %zu bytes: kernel_kb %ld reported_kb %zu\n", count, len, private_kb() - kb,
               (after - before) / 1024);
        for (int i = 0; i < count; i++)
            CHECK_OK(strata_recv(c, b, len, 0, i, NULL));
        suite_signal(c, 0, 1);
    }
    free(b);
}

int main(int argc, char **argv)
{
    struct timespec t0, t1;
    strata_t *s = NULL;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    CHECK_OK(strata_init(NULL, &s));
    clock_gettime(CLOCK_MONOTONIC, &t1);
    if (argc > 3 && !strcmp(argv[1], "report")) {
        report(s, atoi(argv[2]), (size_t)atol(argv[3]));
        CHECK_OK(strata_finalize(s));
        return 0;
    }
    strata_comm_t *c = strata_world(s);
    int me = strata_rank(s), n = strata_size(s);
    double mine[2] = {0, (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec)};
    strata_request_t **q = calloc(2 * (size_t)n, sizeof(strata_request_t *));
    char(*in)[64] = calloc((size_t)n, 64), out[64] = "";
    CHECK(q && in);
    for (int round = 0; round < 10; round++) {
        for (int p = 0; p < n; p++) {
            CHECK_OK(strata_irecv(c, in[p], 64, p, 1, &q[p]));
            CHECK_OK(strata_isend(c, out, 64, p, 1, &q[n + p]));
        }
        CHECK_OK(strata_waitall(2 * (size_t)n, q, NULL));
    }
    mine[0] = (double)private_kb();
    if (me) {
        CHECK_OK(strata_send(c, mine, sizeof mine, 0, 2));
    } else {
        double most = mine[0], slowest = mine[1], got[2];
        for (int p = 1; p < n; p++) {
            CHECK_OK(strata_recv(c, got, sizeof got, p, 2, NULL));
            most = got[0] > most ? got[0] : most;
            slowest = got[1] > slowest ? got[1] : slowest;
        }
        printf("private_kb %.0f start_s %.3f ranks %d\n", most, slowest, n);
    }
    free(q);
    free(in);
    CHECK_OK(strata_finalize(s));
    return 0;
}

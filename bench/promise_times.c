/* Times that Strata promises, for bench/promises.sh: one figure a line.
 * - promise_times wake COUNT: rank 1 sleeps in strata_recv, rank 0 sends after a pause; microseconds from the call of
 *   strata_send to the return of strata_recv. stderr says in how many of the receives rank 1 really slept.
 * - promise_times first: every rank sends its first message to all others at once; milliseconds of each rank until it
 *   has got all of theirs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/strata.h>
#include <sys/resource.h>
#include <time.h>

/* Longer than a rank polls and yields before it sleeps. */
static const struct timespec pause_before = {.tv_nsec = 5000000};

static strata_t *s;
static strata_comm_t *world;

static void must(int rc, const char *what)
{
    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "promise_times: %s: %s\n", what, strata_strerror(rc));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* the same for all processes */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static long times_slept(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_nvcsw;
}

static void wake(int count)
{
    int me = strata_rank(s), slept = 0;
    int64_t at;

    for (int i = -10; i < count; i++) { /* the first ten connect */
        if (me == 0) {
            must(strata_recv(world, &at, sizeof at, 1, 1, STRATA_STATUS_IGNORE), "receive");
            nanosleep(&pause_before, NULL);
            at = now_ns();
            must(strata_send(world, &at, sizeof at, 1, 2), "send");
        } else if (me == 1) {
            must(strata_send(world, &at, sizeof at, 0, 1), "send");
            long before = times_slept();
            must(strata_recv(world, &at, sizeof at, 0, 2, STRATA_STATUS_IGNORE), "receive");
            double us = (double)(now_ns() - at) / 1e3;
            if (i < 0)
                continue;
            slept += times_slept() > before;
            printf("%.2f\n", us);
        }
    }
    if (me == 1)
        fprintf(stderr, "slept %d of %d\n", slept, count);
}

static void first(void)
{
    int n = strata_size(s), me = strata_rank(s);
    strata_request_t **q = calloc(2 * (size_t)n, sizeof(strata_request_t *));
    int *in = calloc((size_t)n, sizeof *in);
    size_t m = 0;

    if (!q || !in)
        must(STRATA_ERR_NOMEM, "start");
    must(strata_fence(s), "fence");
    int64_t begin = now_ns();
    for (int p = 0; p < n; p++) {
        if (p == me)
            continue;
        must(strata_irecv(world, &in[p], sizeof in[p], p, 1, &q[m++]), "receive");
        must(strata_isend(world, &me, sizeof me, p, 1, &q[m++]), "send");
    }
    must(strata_waitall(m, q, NULL), "wait");
    printf("%.3f\n", (double)(now_ns() - begin) / 1e6);
    free(in);
    free(q);
}

int main(int argc, char **argv)
{
    must(strata_init(NULL, &s), "start");
    world = strata_world(s);
    if (argc > 2 && !strcmp(argv[1], "wake"))
        wake(atoi(argv[2]));
    else
        first();
    must(strata_finalize(s), "end");
    return 0;
}

/* Times that Strata promises, for bench/promises.sh: one figure a line.
 * - promise_times wake COUNT: rank 1 sleeps in strata_recv, rank 0 sends after a pause; microseconds from the call of
 *   strata_send to the return of strata_recv. stderr says in how many of the receives rank 1 really slept.
 * - promise_times threads COUNT: two threads of rank 1 sleep, each in a receive of its own; rank 0 sends to one of them
 *   after a pause, in turn. The figures are as above.
 * - promise_times self COUNT: a thread sleeps in a receive from its own rank, another sends.
 * - promise_times first: every rank sends its first message to all others at once; milliseconds of each rank until it
 *   has got all of theirs. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
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

static long times_slept(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_nvcsw;
}

/* Receives the time at which it was sent COUNT times, asking for each by a message to `from` with tag 1. */
struct receiver {
    int from, tag, count;
};

static void *receive_times(void *arg)
{
    const struct receiver *r = arg;
    int64_t at = 0;

    for (int i = -10; i < r->count; i++) {
        must(strata_send(world, &r->tag, sizeof r->tag, r->from, 1), "send");
        must(strata_recv(world, &at, sizeof at, r->from, r->tag, STRATA_STATUS_IGNORE), "receive");
        double us = (double)((int64_t)st_now_ns() - at) / 1e3;
        if (i >= 0)
            printf("%.2f\n", us);
    }
    return NULL;
}

/* The other side of n receivers: to each in turn. */
static void send_times(int to, int n, int count)
{
    int tag = 0;

    for (int i = 0; i < n * (count + 10); i++) {
        must(strata_recv(world, &tag, sizeof tag, to, 1, STRATA_STATUS_IGNORE), "receive");
        nanosleep(&pause_before, NULL);
        int64_t at = (int64_t)st_now_ns();
        must(strata_send(world, &at, sizeof at, to, tag), "send");
    }
}

static void wake_threads(int count)
{
    struct receiver r[2] = {{0, 2, count}, {0, 3, count}};
    pthread_t t[2];

    if (strata_rank(s) == 0)
        send_times(1, 2, count);
    if (strata_rank(s) != 1)
        return;
    for (int i = 0; i < 2; i++)
        must(pthread_create(&t[i], NULL, receive_times, &r[i]) ? STRATA_ERR_SYSTEM : STRATA_OK, "thread");
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void wake_self(int count)
{
    int me = strata_rank(s);
    struct receiver r = {me, 2, count};
    pthread_t t;

    must(pthread_create(&t, NULL, receive_times, &r) ? STRATA_ERR_SYSTEM : STRATA_OK, "thread");
    send_times(me, 1, count);
    pthread_join(t, NULL);
}

static void wake(int count)
{
    int me = strata_rank(s), slept = 0;
    int64_t at;

    for (int i = -10; i < count; i++) { /* the first ten connect */
        if (me == 0) {
            must(strata_recv(world, &at, sizeof at, 1, 1, STRATA_STATUS_IGNORE), "receive");
            nanosleep(&pause_before, NULL);
            at = (int64_t)st_now_ns();
            must(strata_send(world, &at, sizeof at, 1, 2), "send");
        } else if (me == 1) {
            must(strata_send(world, &at, sizeof at, 0, 1), "send");
            long before = times_slept();
            must(strata_recv(world, &at, sizeof at, 0, 2, STRATA_STATUS_IGNORE), "receive");
            double us = (double)((int64_t)st_now_ns() - at) / 1e3;
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
    int64_t begin = (int64_t)st_now_ns();
    for (int p = 0; p < n; p++) {
        if (p == me)
            continue;
        must(strata_irecv(world, &in[p], sizeof in[p], p, 1, &q[m++]), "receive");
        must(strata_isend(world, &me, sizeof me, p, 1, &q[m++]), "send");
    }
    must(strata_waitall(m, q, NULL), "wait");
    printf("%.3f\n", (double)((int64_t)st_now_ns() - begin) / 1e6);
    free(in);
    free(q);
}

int main(int argc, char **argv)
{
    strata_config_t threads = STRATA_CONFIG_INIT;
    const char *what = argc > 2 ? argv[1] : "first";
    int count = argc > 2 ? atoi(argv[2]) : 0;

    threads.thread_level = STRATA_THREAD_MULTIPLE;
    must(strata_init(!strcmp(what, "threads") || !strcmp(what, "self") ? &threads : NULL, &s), "start");
    world = strata_world(s);
    if (!strcmp(what, "wake"))
        wake(count);
    else if (!strcmp(what, "threads"))
        wake_threads(count);
    else if (!strcmp(what, "self"))
        wake_self(count);
    else
        first();
    must(strata_finalize(s), "end");
    return 0;
}

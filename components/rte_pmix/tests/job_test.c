/* rte_pmix in a real job. Started by itself the program starts itself again as three ranks under strata-run; started by
 * any PMIx launcher it is a rank. Not by libcheck, which forks: a PMIx client must not. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "rte_pmix.h"

extern const struct st_component st_component_rte_pmix;

static void check(int ok, int line, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "job_test: rank %s, line %d: %s\n", getenv("PMIX_RANK"), line, what);
    _exit(EXIT_FAILURE);
}
#define CHECK(x) check(x, __LINE__, #x)

/* A wait that others end after so long uses the processor for less than half of it: who spins would use all. What is
 * done besides takes a part of that on a slow machine, with sanitizers. */
enum { WAIT_S = 2 };

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct st_rte *open_one(const struct rte_pmix_config *config)
{
    const struct st_component *c = &st_component_rte_pmix;
    const struct st_rte_component_ops *ops = c->ops;
    struct st_rte *rte = NULL;
    CHECK(ops->open(NULL, c, config, NULL, &rte) == STRATA_OK);
    return rte;
}

static void identity(struct st_rte *rte)
{
    int n = 0;
    const int *local = rte->ops->local_ranks(rte, &n);
    const char *given = getenv("PMIX_RANK");
    CHECK(given && rte->rank == atoi(given));
    CHECK(rte->size >= 2 && n == rte->size); /* the test runs on one machine */
    for (int i = 0; i < n; i++)
        CHECK(local[i] == i && rte->ops->is_local(rte, i) && strcmp(rte->ops->host_of(rte, i), rte->host) == 0);
    CHECK(!rte->ops->is_local(rte, n) && !rte->ops->is_local(rte, -1));
    CHECK(strcmp(rte->ops->host_of(rte, n), "?") == 0);
    CHECK(rte->job_id[0] && rte->host[0]);
}

static size_t fill(char *blob, int rank, int salt)
{
    size_t length = 100 + (size_t)(rank % 6) * 5000;
    memset(blob, 'a' + (rank + salt) % 26, length);
    return length;
}

static void expect(struct st_rte *rte, int rank, int salt)
{
    char expected[32768];
    void *blob = NULL;
    size_t length = 0, n = fill(expected, rank, salt);
    CHECK(rte->ops->get(rte, rank, "blob", &blob, &length) == STRATA_OK);
    CHECK(length == n && memcmp(blob, expected, n) == 0);
    free(blob);
    blob = NULL;
    CHECK(rte->ops->get(rte, rank, "absent", &blob, &length) == STRATA_ERR_NOT_FOUND && !blob);
}

static void publish(struct st_rte *rte, int salt)
{
    char blob[32768];
    CHECK(rte->ops->put(rte, "blob", blob, fill(blob, rte->rank, salt)) == STRATA_OK);
    CHECK(rte->ops->put(rte, "other", &rte->rank, sizeof(int)) == STRATA_OK);
    CHECK(rte->ops->commit(rte) == STRATA_OK);
    CHECK(rte->ops->put(rte, "late", "x", 1) == STRATA_ERR_STATE);
}

/* Others ask before the last rank has committed: they wait, without using the processor. */
static void late_peer(struct st_rte *rte)
{
    if (rte->rank == rte->size - 1)
        sleep(WAIT_S);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    publish(rte, 0);
    expect(rte, rte->size - 1, 0);
    CHECK(seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < WAIT_S / 2.0);
    for (int i = 0; i < rte->size; i++)
        expect(rte, i, 0);
    void *blob;
    size_t length;
    CHECK(rte->ops->get(rte, rte->size, "blob", &blob, &length) == STRATA_ERR_RANK);
}

static void fence_done(void *arg, int rc)
{
    CHECK(rc == STRATA_OK);
    atomic_store((_Atomic(int) *)arg, 1);
}

static void fences(struct st_rte *rte)
{
    CHECK(rte->ops->fence(rte) == STRATA_OK);
    if (rte->rank == 0)
        sleep(WAIT_S);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    CHECK(rte->ops->fence(rte) == STRATA_OK);
    CHECK(seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu < WAIT_S / 2.0);
    _Atomic(int) done = 0;
    CHECK(rte->ops->fence_begin(rte, fence_done, &done) == STRATA_OK);
    while (!done)
        usleep(1000);
}

/* The second context of each process meets the second contexts of the others, and a peer that never commits is waited
 * for as long as the parameter says. */
static void second_context(struct st_rte *first)
{
    struct rte_pmix_config impatient = {.timeout_s = 1};
    struct st_rte *rte = open_one(&impatient);
    CHECK(strcmp(rte->job_id, first->job_id) != 0);
    if (rte->rank == 0) {
        void *blob;
        size_t length;
        double wall = seconds(CLOCK_MONOTONIC);
        CHECK(rte->ops->get(rte, 1, "blob", &blob, &length) == STRATA_ERR_TIMEOUT);
        wall = seconds(CLOCK_MONOTONIC) - wall;
        CHECK(wall > 0.9);
    }
    impatient.timeout_s = 240; /* from here on everybody answers, on a busy machine late */
    CHECK(first->ops->fence(first) == STRATA_OK);
    publish(rte, 7);
    CHECK(rte->ops->fence(rte) == STRATA_OK);
    for (int i = 0; i < rte->size; i++) {
        expect(rte, i, 7);
        expect(first, i, 0);
    }
    CHECK(rte->ops->fence(rte) == STRATA_OK);
    rte->ops->close(rte);
}

static void on_death(void *arg, int rank, const char *reason)
{
    (void)arg, (void)rank, (void)reason;
}

int main(void)
{
    if (!rte_pmix_launched()) {
        char me[4096] = "";
        if (readlink("/proc/self/exe", me, sizeof(me) - 1) > 0)
            execlp("strata-run", "strata-run", "-n", "3", "--timeout", "280", me, (char *)NULL);
        perror("strata-run");
        return EXIT_FAILURE;
    }
    struct rte_pmix_config config = {.timeout_s = 240};
    struct st_rte *rte = open_one(&config);
    rte->ops->watch(rte, on_death, NULL);
    identity(rte);
    late_peer(rte);
    fences(rte);
    second_context(rte);
    CHECK(rte->ops->fence(rte) == STRATA_OK);
    rte->ops->close(rte);
    rte = open_one(&config); /* after all are gone */
    publish(rte, 3);
    expect(rte, (rte->rank + 1) % rte->size, 3);
    CHECK(rte->ops->fence(rte) == STRATA_OK);
    rte->ops->close(rte);
    return EXIT_SUCCESS;
}

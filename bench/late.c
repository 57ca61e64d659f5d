#define _GNU_SOURCE 1
/* Cost of a window of messages to both ends when its receives are posted late, or in time: one thread drives two
 * contexts of one process, so that nobody waits, and its own processor time counts, on a busy machine too. Late streams
 * are kept in memory of malloc, which with MALLOC_TRIM_THRESHOLD_=1000000000 it does not give back.
 * `bench/late [BYTES...]`. The default stands beside streams and beside announcements that are got at once; the last
 * columns say what the sender has learnt, and from which length on the transport says that asking pays. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "bench/median.h"
#include "support/world.h"

enum { WINDOW = 32, WINDOWS = 40, PARTS = 9, DATA = 1, MARK = 2 };

static const struct {
    const char *name, *settings;
} ways[] = {
    {"default", "btl=sm,self"},
    {"streamed", "btl=sm,self pml_ob1_stream_limit=16777216 pml_ob1_rdma_min=1g"},
    {"announced", "btl=sm,self pml_ob1_eager_limit=512 pml_ob1_stream_limit=0 pml_ob1_rdma_min=1 pml_ob1_rndv=get"}};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

struct pair {
    strata_t *s[2];
    char *out, *in;
    size_t bytes;
    bool late;
};

struct learnt {
    char habit[16];
    unsigned long alone_min;
};

static double spent_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void post(const struct pair *p, strata_request_t *q[WINDOW])
{
    for (size_t i = 0; i < WINDOW; i++)
        CHECK_OK(strata_irecv(strata_world(p->s[1]), p->in + i * p->bytes, p->bytes, 0, DATA, &q[i]));
}

static void end(const struct pair *p, strata_request_t **q, size_t n)
{
    for (size_t i = 0; i < n;) {
        int done;
        CHECK_OK(strata_test(&q[i], &done, STRATA_STATUS_IGNORE));
        i += done != 0;
        (void)strata_progress(p->s[0]);
        (void)strata_progress(p->s[1]);
    }
}

/* Late: what was sent behind the window has arrived before its receives are posted. */
static void window(const struct pair *p)
{
    strata_request_t *in[WINDOW], *out[WINDOW], *mark[2];
    char byte = 0, got;

    if (!p->late)
        post(p, in);
    CHECK_OK(strata_irecv(strata_world(p->s[1]), &got, 1, 0, MARK, &mark[0]));
    for (size_t i = 0; i < WINDOW; i++)
        CHECK_OK(strata_isend(strata_world(p->s[0]), p->out + i * p->bytes, p->bytes, 1, DATA, &out[i]));
    CHECK_OK(strata_isend(strata_world(p->s[0]), &byte, 1, 1, MARK, &mark[1]));
    end(p, mark, 2);
    if (p->late)
        post(p, in);
    end(p, in, WINDOW);
    end(p, out, WINDOW);
}

static void find(const char *json, const char *name, char *out, size_t size)
{
    const char *at = strstr(json, name);

    snprintf(out, size, "%s", at ? at + strlen(name) : "");
    out[strcspn(out, "\",\n}")] = 0;
}

static struct learnt ask(strata_t *s)
{
    struct learnt l = {.habit = "-"};
    char *json, number[24];

    CHECK_OK(strata_peer_report(s, 1, &json));
    find(json, "\"habit\": \"", l.habit, sizeof(l.habit));
    find(json, "\"alone_min\": ", number, sizeof(number));
    l.alone_min = strtoul(number, NULL, 10);
    free(json);
    return l;
}

static void *finalize(void *s)
{
    CHECK_OK(strata_finalize(s));
    return NULL;
}

/* us a message by one way, both ends: the median of the parts. */
static double measure(struct pair *p, const char *settings, struct learnt *learnt)
{
    struct tw_world *w = tw_create(&(struct tw_options){.n = 2, .settings = settings});
    double part[PARTS];
    pthread_t other;
    char err[1024];

    for (int i = 0; i < 2; i++)
        if (tw_init(w, i, &p->s[i], err, sizeof(err)) != STRATA_OK) {
            fprintf(stderr, "late: %s\n", err);
            exit(1);
        }
    for (int i = 0; i < WINDOWS; i++)
        window(p);
    for (int i = 0; i < PARTS; i++) {
        double begin = spent_us();
        for (int k = 0; k < WINDOWS; k++)
            window(p);
        part[i] = (spent_us() - begin) / WINDOWS / WINDOW;
    }
    if (learnt)
        *learnt = ask(p->s[0]);
    if (pthread_create(&other, NULL, finalize, p->s[1]) != 0)
        exit(1);
    finalize(p->s[0]); /* it waits for all ranks */
    pthread_join(other, NULL);
    tw_destroy(w);
    return median(part, PARTS);
}

/* Not by malloc, which after a large block was freed no longer gives memory back to the system. */
static char *memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (p == MAP_FAILED) {
        perror("late: mmap");
        exit(1);
    }
    return p;
}

static void row(size_t bytes, bool late)
{
    size_t all = bytes * WINDOW;
    struct pair p = {.out = memory(all), .in = memory(all), .bytes = bytes, .late = late};
    struct learnt learnt;
    double us[WAYS];

    for (int i = 0; i < WAYS; i++)
        us[i] = measure(&p, ways[i].settings, i ? NULL : &learnt);
    printf("| %s | %zu | %.2f | %.2f | %.2f | %s | %lu |\n", late ? "late" : "in time", bytes, us[0], us[1], us[2],
           learnt.habit, learnt.alone_min);
    (void)munmap(p.out, all);
    (void)munmap(p.in, all);
}

int main(int argc, char **argv)
{
    static const size_t usual[] = {20480, 32768, 49152, 65536};

    printf("| receives | bytes | default, us | %s | %s | learnt | asking pays from |\n|---|---|---|---|---|---|---|\n",
           ways[1].name, ways[2].name);
    for (int late = 1; late >= 0; late--) {
        for (int i = 1; i < argc; i++) {
            unsigned long bytes = strtoul(argv[i], NULL, 10);
            if (bytes == 0 || bytes % 4096 || bytes > 1u << 20) {
                fprintf(stderr, "late: %s: bytes are a multiple of 4096, 1 MiB at most\n", argv[i]);
                return 2;
            }
            row(bytes, late);
        }
        for (size_t i = 0; argc == 1 && i < sizeof(usual) / sizeof(*usual); i++)
            row(usual[i], late);
    }
    return fflush(stdout) ? 1 : 0;
}

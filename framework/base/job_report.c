/* Records for strata-run: who listens, and what is written. */
#define _GNU_SOURCE 1
#include "framework/base/job_report.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "framework/base/context.h"
#include "framework/pml/report.h"
#include "framework/worker/worker.h"

#define LISTENER_STACK (64u << 10)

struct st_job_report {
    strata_t *context;
    _Atomic(uint32_t) *ask;     /* mapped; strata-run adds to it */
    _Atomic(uint32_t) number;   /* of the last question */
    _Atomic(uint32_t) answered; /* the last one that was answered, by whichever thread came first */
    _Atomic(bool) stop;
    bool listens;
    pthread_t listener;
};

/* ---- what is written --------------------------------------------------------------------------------------------- */

static void job_report_counter(void *arg, const strata_counter_t *c)
{
    static const char *const kinds[] = {[STRATA_COUNT] = "count", [STRATA_LEVEL] = "level", [STRATA_PEAK] = "peak"};
    char name[192];

    snprintf(name, sizeof(name), "%s_%s_%s", c->framework, c->component, c->name);
    json_array_append_new(arg, json_pack("{s:s, s:s, s:s, s:I}", "name", name, "unit", c->unit, "kind", kinds[c->kind],
                                         "value", (json_int_t)c->value));
}

static void job_report_memory(void *arg, const strata_mem_line_t *line)
{
    json_array_append_new(arg, json_pack("{s:s, s:s, s:I, s:I, s:b, s:b}", "component", line->component, "category",
                                         line->category, "bytes", (json_int_t)line->bytes, "most",
                                         (json_int_t)line->most, "shared", line->shared != 0, "user", line->user != 0));
}

char *st_job_report_text(strata_t *s)
{
    json_t *counters = json_array(), *memory = json_array();

    (void)strata_counters(s, job_report_counter, counters);
    (void)strata_mem_report(s, job_report_memory, memory);
    st_context_lock(s);
    json_t *peers = st_report_traffic_json(s);
    st_context_unlock(s);
    json_t *j = json_pack("{s:i, s:s, s:o, s:o, s:o}", "rank", s->rte->rank, "host", s->rte->host, "peers", peers,
                          "counters", counters, "memory", memory);
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    return text;
}

static bool job_report_put(int fd, const char *text)
{
    for (size_t n = strlen(text); n > 0;) {
        ssize_t put = write(fd, text, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        text += put;
        n -= (size_t)put;
    }
    return true;
}

/* Under another name first: who looks into the folder sees whole records. strata-run may have gone, and its folder. */
static void job_report_write(strata_t *s, const char *kind)
{
    const char *folder = s->base->report_folder;
    char path[PATH_MAX], name[PATH_MAX];
    char *text = st_job_report_text(s);

    if (!text || snprintf(path, sizeof(path), "%s/new.XXXXXX", folder) >= (int)sizeof(path)) {
        free(text);
        return;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    bool whole = fd >= 0 && job_report_put(fd, text);
    if (fd >= 0)
        close(fd);
    if (whole &&
        snprintf(name, sizeof(name), "%s/%s.%d%s", folder, kind, s->rte->rank, strrchr(path, '.')) < (int)sizeof(name))
        whole = rename(path, name) == 0;
    if (fd >= 0 && !whole)
        (void)unlink(path);
    if (!whole)
        st_log(s, ST_LOG_INFO, NULL, "no report for strata-run can be written into %s: %s", folder, strerror(errno));
    free(text);
}

/* ---- who listens ------------------------------------------------------------------------------------------------- */

/* By rank, so that a rank that ends need not wake all others. */
static uint32_t job_report_bit(const strata_t *s)
{
    return 1u << s->rte->rank % 32;
}

static void *job_report_listen(void *arg)
{
    struct st_job_report *r = arg;
    uint32_t seen = atomic_load(r->ask);

    while (!atomic_load(&r->stop)) {
        uint32_t now = atomic_load(r->ask);
        if (now == seen) {
            syscall(SYS_futex, r->ask, FUTEX_WAIT_BITSET, seen, NULL, NULL, job_report_bit(r->context));
            continue;
        }
        seen = now;
        atomic_store(&r->number, now);
        st_worker_ask(r->context->worker);
    }
    return NULL;
}

static _Atomic(uint32_t) *job_report_map(const char *folder)
{
    char path[PATH_MAX];
    void *at = MAP_FAILED;

    if (snprintf(path, sizeof(path), "%s/ask", folder) >= (int)sizeof(path))
        return NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    off_t length = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    if (length >= (off_t)sizeof(uint32_t))
        at = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

/* It takes no signal of the program's and little memory. */
static bool job_report_spawn(struct st_job_report *r)
{
    pthread_attr_t attr;
    sigset_t all, before;

    if (pthread_attr_init(&attr) != 0)
        return false;
    (void)pthread_attr_setstacksize(&attr, LISTENER_STACK); /* else the default size, which does too */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool begun = pthread_create(&r->listener, &attr, job_report_listen, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return begun;
}

void st_job_report_start(strata_t *s)
{
    if (!s->base->report_folder || !*s->base->report_folder)
        return;
    struct st_job_report *r = calloc(1, sizeof(*r));
    if (!r)
        return;
    r->context = s;
    r->ask = job_report_map(s->base->report_folder);
    if (r->ask) {
        atomic_store(&r->number, atomic_load(r->ask));
        atomic_store(&r->answered, atomic_load(&r->number));
    }
    r->listens = r->ask && job_report_spawn(r);
    s->job_report = r;
    if (!r->listens)
        st_log(s, ST_LOG_WARN, NULL, "strata-run will get no report from this rank while it runs: %s/ask: %s",
               s->base->report_folder, strerror(errno));
}

void st_job_report_answer(strata_t *s)
{
    struct st_job_report *r = s->job_report;
    uint32_t number, before;
    char kind[32];

    if (!r) /* strata-info --live has asked */
        return;
    number = atomic_load(&r->number);
    before = atomic_load(&r->answered);
    if (number == before || !atomic_compare_exchange_strong(&r->answered, &before, number))
        return;
    snprintf(kind, sizeof(kind), "asked.%u", (unsigned)number);
    job_report_write(s, kind);
}

void st_job_report_end(strata_t *s)
{
    if (s->job_report)
        job_report_write(s, "end");
}

/* Between its look at `stop` and its sleep the listener misses a wake: it is woken until it has come. */
static void job_report_join(const struct st_job_report *r)
{
    const struct timespec pause = {.tv_nsec = 200000};

    for (;;) {
        syscall(SYS_futex, r->ask, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, job_report_bit(r->context));
        if (pthread_tryjoin_np(r->listener, NULL) == 0)
            return;
        nanosleep(&pause, NULL);
    }
}

void st_job_report_stop(strata_t *s)
{
    struct st_job_report *r = s->job_report;

    if (!r)
        return;
    s->job_report = NULL;
    atomic_store(&r->stop, true);
    if (r->listens)
        job_report_join(r);
    if (r->ask)
        munmap(r->ask, sizeof(uint32_t));
    free(r);
}

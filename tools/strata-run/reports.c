/* Gathers the ranks' records, and shows what is made of them. */
#define _GNU_SOURCE
#include "reports.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "merge.h"
#include "report.h"
#include "sink.h"

/* Between two looks for answers. */
static const double look_s = 0.02;

bool reports_wanted(const struct run_options *o)
{
    return o->report_counters || o->report_memory || o->report_matrix || o->report_dot;
}

static int reports_make_word(struct reports *r)
{
    char path[PATH_MAX];
    void *at = MAP_FAILED;
    if (snprintf(path, sizeof(path), "%s/ask", r->folder) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, sizeof(uint32_t)) == 0)
        at = mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    r->ask = at == MAP_FAILED ? NULL : at;
    return r->ask ? 0 : -1;
}

int reports_create(struct reports *r, const struct job *job, const char *dir)
{
    const char *file = job->options->report_file;
    *r = (struct reports){.job = job};
    if (!reports_wanted(job->options))
        return 0;
    if (file && !(r->file = fopen(file, "we"))) {
        report_error("--report-file %s: %s", file, strerror(errno));
        return -1;
    }
    snprintf(r->folder, sizeof(r->folder), "%s/reports", dir);
    if (mkdir(r->folder, 0700) == 0 && reports_make_word(r) == 0)
        return 0;
    report_error("cannot make a folder for the ranks' reports: %s: %s", r->folder, strerror(errno));
    return -1;
}

void reports_destroy(struct reports *r)
{
    if (r->ask)
        munmap(r->ask, sizeof(uint32_t));
    if (r->file && fclose(r->file) != 0)
        report_error("--report-file %s: %s", r->job->options->report_file, strerror(errno));
    *r = (struct reports){0};
}

/* ---- records ---- */

/* "asked.3.17.XXXXXX" with the prefix "asked.3.", or "end.17.XXXXXX" with "end.": the rank, else -1. */
static int rank_of(const char *name, const char *prefix, int n)
{
    size_t length = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9')
        return -1;
    long rank = strtol(name + length, &end, 10);
    return *end == '.' && rank >= 0 && rank < n ? (int)rank : -1;
}

/* Calls fn for each record of this prefix. */
static void for_each(const struct reports *r, const char *prefix,
                     void (*fn)(const struct reports *r, int rank, const char *name, void *arg), void *arg)
{
    DIR *d = opendir(r->folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        int rank = rank_of(e->d_name, prefix, r->job->options->n);
        if (rank >= 0)
            fn(r, rank, e->d_name, arg);
    }
    if (d)
        closedir(d);
}

static void mark(const struct reports *r, int rank, const char *name, void *arg)
{
    bool *seen = arg;
    (void)r, (void)name;
    seen[rank] = true;
}

static void load(const struct reports *r, int rank, const char *name, void *arg)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", r->folder, name) >= (int)sizeof(path))
        return;
    json_t *record = json_load_file(path, 0, NULL);
    if (record)
        merge_add(arg, rank, record);
    json_decref(record);
}

static void drop(const struct reports *r, int rank, const char *name, void *arg)
{
    char path[PATH_MAX];
    (void)rank, (void)arg;
    if (snprintf(path, sizeof(path), "%s/%s", r->folder, name) < (int)sizeof(path))
        (void)unlink(path);
}

/* ---- what is shown ---- */

static void show(const struct reports *r, struct io *io, const char *prefix)
{
    const struct run_options *o = r->job->options;
    struct merge m;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out || merge_create(&m, o->n, prefix != NULL) != 0) {
        report_error("out of memory: no report is shown");
        if (out)
            fclose(out);
        free(text);
        return;
    }
    for_each(r, "end.", load, &m);
    if (prefix)
        for_each(r, prefix, load, &m);
    merge_print_missing(&m, out);
    if (o->report_matrix)
        merge_print_matrix(&m, out);
    if (o->report_dot)
        merge_print_dot(&m, out);
    if (o->report_counters)
        merge_print_rows(&m, MERGE_COUNTERS, o->report_counters == RUN_REPORT_JSON, out);
    if (o->report_memory)
        merge_print_rows(&m, MERGE_MEMORY, o->report_memory == RUN_REPORT_JSON, out);
    merge_destroy(&m);
    bool whole = fclose(out) == 0;
    if (!whole)
        report_error("out of memory: no report is shown");
    else if (!r->file)
        sink_put(&io->sinks[1], text, n);
    else if (fwrite(text, 1, n, r->file) != n || fflush(r->file) != 0)
        report_error("--report-file %s: %s", o->report_file, strerror(errno));
    free(text);
}

void reports_ask(struct reports *r)
{
    if (!r->ask)
        return;
    if (r->until > 0) {
        r->again = true;
        return;
    }
    r->number = atomic_fetch_add(r->ask, 1) + 1;
    syscall(SYS_futex, r->ask, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    r->until = run_now() + REPORTS_WAIT_S;
}

/* A rank that has ended, or has left the job for good, answers no more. */
static bool all_answered(const struct reports *r, const char *prefix)
{
    int n = r->job->options->n, there = 0;
    bool *seen = calloc((size_t)n, sizeof(*seen));
    if (!seen)
        return false;
    for_each(r, prefix, mark, seen);
    for (int i = 0; i < n; i++)
        there += seen[i] || r->job->ranks[i].ended;
    free(seen);
    return there == n;
}

double reports_tick(struct reports *r, struct io *io)
{
    char prefix[32];
    if (r->until <= 0)
        return 0;
    snprintf(prefix, sizeof(prefix), "asked.%u.", (unsigned)r->number);
    if (run_now() < r->until && !all_answered(r, prefix))
        return run_now() + look_s;
    show(r, io, prefix);
    for_each(r, "asked.", drop, NULL);
    for_each(r, prefix, drop, NULL);
    r->until = 0;
    if (!r->again)
        return 0;
    r->again = false;
    reports_ask(r);
    return run_now() + look_s;
}

void reports_end(struct reports *r, struct io *io)
{
    if (r->ask)
        show(r, io, NULL);
}

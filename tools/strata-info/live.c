/* --live: asks a running rank at its socket (framework/base/live.h), and the kernel for what its process holds. */
#define _GNU_SOURCE 1
#include "info.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/process_memory.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LIVE_WAIT_MS = 3000, CONTEXTS = 8 };

/* Anybody may listen under such a name: only the process itself, of its own user, is believed. */
static bool is_it(int fd, int pid)
{
    struct ucred who;
    struct stat st;
    char path[32];
    socklen_t length = sizeof who;

    snprintf(path, sizeof path, "/proc/%d", pid);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.pid == pid && stat(path, &st) == 0 &&
           who.uid == st.st_uid;
}

/* Connected to context k of the process, or -1. *full: until LIVE_WAIT_MS were over, the context had as many questions
 * as its queue takes, as one that is stopped: a connect(2) that waits would wait for ever. */
static int reach(int pid, int k, bool *full)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "strata-live-%d-%d", pid, k);
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    const int64_t until = st_now_ms() + LIVE_WAIT_MS;

    *full = false;
    if (fd < 0)
        return -1;
    while ((error = connect(fd, (struct sockaddr *)&at, length) == 0 ? 0 : errno) == EAGAIN && st_now_ms() < until)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (!error && is_it(fd, pid))
        return fd;
    *full = error == EAGAIN;
    close(fd);
    return -1;
}

/* What comes until the connection ends; NULL: nothing in time. *late: it waited in vain. */
static json_t *hear(int fd, bool *late)
{
    char *text = NULL;
    size_t n = 0;
    FILE *all = open_memstream(&text, &n);
    const int64_t until = st_now_ms() + LIVE_WAIT_MS;
    json_t *record = NULL;

    *late = false;
    while (all) {
        char part[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = until - st_now_ms();
        int ready = poll(&p, 1, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        *late = ready == 0;
        ssize_t got = ready > 0 ? read(fd, part, sizeof part) : 0; /* poll has seen some: never "try again" */
        if (got <= 0)
            break;
        fwrite(part, 1, (size_t)got, all);
    }
    if (all && fclose(all) == 0 && !*late)
        record = json_loads(text, 0, NULL);
    free(text);
    return record;
}

static json_t *kernel_figures(int pid)
{
    struct st_process_memory m;

    if (st_process_memory(pid, &m) != STRATA_OK)
        return NULL;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "private", (json_int_t)m.private_bytes, "proportional",
                     (json_int_t)m.proportional, "device mappings", (json_int_t)m.device,
                     "device mappings, proportional", (json_int_t)m.device_share, "page tables",
                     (json_int_t)m.page_tables, "resident", (json_int_t)m.resident, "resident at most",
                     (json_int_t)m.resident_most);
}

static long long number(const json_t *j, const char *name)
{
    return (long long)json_integer_value(json_object_get(j, name));
}

static const char *word(const json_t *j, const char *name)
{
    const char *text = json_string_value(json_object_get(j, name));

    return text ? text : "-";
}

static void print_record(const json_t *r)
{
    const json_t *one;
    size_t i;

    printf("rank %lld on %s\n", number(r, "rank"), word(r, "host"));
    printf("  %8s  %-24s %14s %16s %14s %16s\n", "peer", "transport", "messages sent", "bytes sent", "received",
           "bytes");
    json_array_foreach(json_object_get(r, "peers"), i, one)
        printf("  %8lld  %-24s %14lld %16lld %14lld %16lld\n", number(one, "rank"), word(one, "by"),
               number(one, "messages_sent"), number(one, "bytes_sent"), number(one, "messages_received"),
               number(one, "bytes_received"));
    printf("  %-52s %14s %14s\n", "memory, by component and category", "bytes", "at most");
    json_array_foreach(json_object_get(r, "memory"), i, one)
    {
        char name[160];
        snprintf(name, sizeof name, "%s: %s%s", word(one, "component"), word(one, "category"),
                 json_is_true(json_object_get(one, "shared")) ? " (shared)" : "");
        if (number(one, "bytes") || number(one, "most"))
            printf("  %-52s %14lld %14lld\n", name, number(one, "bytes"), number(one, "most"));
    }
}

static void print_figures(int pid, json_t *figures)
{
    const char *name;
    json_t *value;

    printf("process %d, by the kernel\n", pid);
    json_object_foreach(figures, name, value) printf("  %-52s %14lld\n", name, (long long)json_integer_value(value));
}

/* Records of all contexts of the process; *late: at least one has not answered. */
static json_t *ask(int pid, unsigned *reached, bool *late)
{
    json_t *records = json_array();

    for (int k = 0; k < CONTEXTS; k++) {
        bool in_vain, full;
        int fd = reach(pid, k, &full);
        *reached += fd >= 0 || full;
        *late |= full;
        if (fd < 0)
            continue;
        json_t *one = hear(fd, &in_vain);
        close(fd);
        *late |= in_vain;
        if (one)
            json_array_append_new(records, one);
    }
    return records;
}

static void explain(int pid, unsigned reached, bool late)
{
    if (reached == 0)
        fprintf(stderr,
                "strata-info: process %d does not listen: it is no rank of a Strata job of more than one rank, "
                "belongs to another user or network namespace, or runs with mca_base_live=0\n",
                pid);
    else if (late)
        fprintf(stderr, "strata-info: process %d has made no call of Strata's for %d s\n", pid, LIVE_WAIT_MS / 1000);
    else
        fprintf(stderr, "strata-info: process %d has given no answer: it ends, or belongs to another user\n", pid);
}

int live_run(const struct options *o)
{
    unsigned reached = 0;
    bool late = false;
    json_t *figures = kernel_figures(o->live), *records = ask(o->live, &reached, &late);
    const bool whole = reached > 0 && json_array_size(records) == reached;
    const json_t *one;
    size_t i;

    if (!whole)
        explain(o->live, reached, late);
    if (o->json) {
        json_t *j = json_pack("{s:i, s:o, s:o}", "pid", o->live, "contexts", json_incref(records), "process",
                              figures ? json_incref(figures) : json_null());
        json_dumpf(j, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(j);
    } else {
        json_array_foreach(records, i, one) print_record(one);
        if (figures)
            print_figures(o->live, figures);
    }
    json_decref(records);
    json_decref(figures);
    return whole && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

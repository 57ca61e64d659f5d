/* One rank of a job: speaks by the pattern, then leaves what it measured as FOLDER/rank.N.json. A file, since a message
 * to the rank that gathers would be a connection more. */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/process_memory.h>
#include <strata/strata.h>

enum { TAG = 1, MEET, PING, WARM = 200, BATCHES = 41, TURNS = 100 };

const char *const pattern_names[N_PATTERNS] = {"hello", "pairwise", "alltoall"};

struct rank {
    strata_t *s;
    strata_comm_t *world;
    int me, n;
    double init_us, first_us; /* first_us < 0: spoke to nobody */
    double us[BATCHES];       /* latency of the active pair; rank 0 */
    bool timed;
};

static double since_us(uint64_t ns)
{
    return (double)(st_now_ns() - ns) / 1e3;
}

static int exchange(const struct rank *r, int to, int from, int tag)
{
    char in[8], out[8] = "";

    return strata_sendrecv(r->world, out, sizeof out, to, tag, in, sizeof in, from, tag, STRATA_STATUS_IGNORE);
}

static int meet(const struct rank *r)
{
    int rc = STRATA_OK;

    for (int d = 1; d < r->n && rc == STRATA_OK; d *= 2)
        rc = exchange(r, (r->me + d) % r->n, (r->me - d + r->n) % r->n, MEET);
    return rc;
}

static int speak(struct rank *r, enum pattern pattern)
{
    const uint64_t begin = st_now_ns();
    int rc = STRATA_OK;

    r->first_us = -1;
    if (pattern == HELLO || (pattern == PAIRWISE && (r->me ^ 1) >= r->n))
        return STRATA_OK;
    for (int d = 1; d < (pattern == PAIRWISE ? 2 : r->n) && rc == STRATA_OK; d++) {
        int to = pattern == PAIRWISE ? r->me ^ 1 : (r->me + d) % r->n;
        rc = exchange(r, to, pattern == PAIRWISE ? to : (r->me - d + r->n) % r->n, TAG);
        if (d == 1)
            r->first_us = since_us(begin);
    }
    return rc == STRATA_OK && pattern == ALL_TO_ALL ? meet(r) : rc;
}

static int turn(const struct rank *r)
{
    int rc = r->me ? STRATA_OK : strata_send(r->world, NULL, 0, 1, PING);

    if (rc == STRATA_OK)
        rc = strata_recv(r->world, NULL, 0, !r->me, PING, STRATA_STATUS_IGNORE);
    return rc == STRATA_OK && r->me ? strata_send(r->world, NULL, 0, 0, PING) : rc;
}

/* Figure 6: ranks 0 and 1 play, all others wait in Strata. */
static int play(struct rank *r)
{
    int rc = STRATA_OK;

    for (int i = 0; i < WARM && r->me < 2 && rc == STRATA_OK; i++)
        rc = turn(r);
    for (int b = 0; b < BATCHES && r->me < 2 && rc == STRATA_OK; b++) {
        const uint64_t begin = st_now_ns();
        for (int i = 0; i < TURNS && rc == STRATA_OK; i++)
            rc = turn(r);
        r->us[b] = since_us(begin) / TURNS / 2;
    }
    r->timed = r->me == 0;
    return rc == STRATA_OK ? meet(r) : rc;
}

static void take_line(void *arg, const strata_mem_line_t *line)
{
    char name[160];

    snprintf(name, sizeof name, "%s: %s", line->component, line->category);
    if (line->user || !line->bytes)
        return;
    json_int_t before = json_integer_value(json_object_get(arg, name));
    json_object_set_new(arg, name, json_integer(before + (json_int_t)line->bytes));
}

static json_t *kernel(const struct st_process_memory *m)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "private", (json_int_t)m->private_bytes, "proportional",
                     (json_int_t)m->proportional, "page_tables", (json_int_t)m->page_tables, "device",
                     (json_int_t)m->device, "device_share", (json_int_t)m->device_share);
}

static bool leave(const struct rank *r, const char *folder, const struct st_process_memory *m, json_t *ours)
{
    char path[4096];
    json_t *j = json_pack("{s:f, s:f, s:o, s:o}", "init_us", r->init_us, "first_us", r->first_us, "kernel", kernel(m),
                          "ours", ours);

    if (r->timed) {
        json_t *us = json_array();
        for (int b = 0; b < BATCHES; b++)
            json_array_append_new(us, json_real(r->us[b]));
        json_object_set_new(j, "latency_us", us);
    }
    snprintf(path, sizeof path, "%s/rank.%d.json", folder, r->me);
    bool well = json_dump_file(j, path, JSON_COMPACT) == 0;
    if (!well)
        fprintf(stderr, "strata-memscale: rank %d: %s cannot be written\n", r->me, path);
    json_decref(j);
    return well;
}

int rank_run(int argc, char **argv)
{
    struct st_process_memory m = {0};
    struct rank r = {.s = NULL};
    int pattern = 0;

    while (argc == 3 && pattern < N_PATTERNS && strcmp(argv[1], pattern_names[pattern]) != 0)
        pattern++;
    if (argc != 3 || pattern == N_PATTERNS)
        return EXIT_USER;
    const uint64_t begin = st_now_ns();
    if (strata_init(NULL, &r.s) != STRATA_OK)
        return EXIT_FAILURE;
    r.init_us = since_us(begin);
    r.world = strata_world(r.s);
    r.me = strata_rank(r.s);
    r.n = strata_size(r.s);
    json_t *ours = json_object();
    int rc = speak(&r, (enum pattern)pattern);
    if (rc == STRATA_OK)
        rc = st_process_memory(0, &m);
    if (rc == STRATA_OK)
        rc = strata_mem_report(r.s, take_line, ours);
    if (rc == STRATA_OK && pattern == ALL_TO_ALL && r.n > 1)
        rc = play(&r);
    if (rc != STRATA_OK)
        fprintf(stderr, "strata-memscale: rank %d: %s\n", r.me, strata_strerror(rc));
    bool well = rc == STRATA_OK && leave(&r, argv[2], &m, json_incref(ours));
    json_decref(ours);
    return strata_finalize(r.s) == STRATA_OK && well ? EXIT_SUCCESS : EXIT_FAILURE;
}

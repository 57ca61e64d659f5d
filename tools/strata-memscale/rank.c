/* One rank of a job: speaks by the pattern, then leaves what it measured as FOLDER/rank.N.json. A file, since a message
 * to the rank that gathers would be a connection more. Compiled once over Strata and once per MPI (tools/mpi-twin). */
#define _GNU_SOURCE 1
#include "meeting.h"
#ifdef MPI_TWIN
#include "rank_mpi.h"
#else
#include "rank_strata.h"
#endif
#include "memscale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/process_memory.h>

#include "play.h"

enum { TAG = 1, BYTES = 8, POLL_US = 20 };

const char *const pattern_names[N_PATTERNS] = {"hello", "pairwise", "alltoall"};

struct rank {
    struct port p;
    enum pattern pattern;
    const char *folder;
    struct meeting *meeting;  /* NULL: ranks on several machines, who meet at the launcher's fence */
    double init_us, first_us; /* first_us < 0: spoke to nobody */
    double one[PLAY_BATCHES]; /* latency of the one active pair; rank 0 */
    double all[PLAY_BATCHES]; /* latency of this pair while all are active; even ranks */
    bool timed_one, timed_all;
};

static double since_us(uint64_t ns)
{
    return (double)(st_now_ns() - ns) / 1e3;
}

static void exchange(struct rank *r, int to, int from)
{
    char in[BYTES], out[BYTES] = "";

    port_sendrecv(&r->p, out, in, BYTES, to, from, TAG);
}

static void speak(struct rank *r)
{
    const uint64_t begin = st_now_ns();
    const int me = r->p.rank, n = r->p.n, other = me ^ 1;

    r->first_us = -1;
    if (r->pattern == HELLO || (r->pattern == PAIRWISE && other >= n) || n == 1)
        return;
    if (r->pattern == PAIRWISE)
        exchange(r, other, other);
    for (int d = 1; r->pattern == ALL_TO_ALL && d < n; d++) {
        exchange(r, (me + d) % n, (me - d + n) % n);
        if (d == 1)
            r->first_us = since_us(begin);
    }
    if (r->pattern == PAIRWISE)
        r->first_us = since_us(begin);
}

static void meet(struct rank *r, enum meeting_stage stage)
{
    if (!r->meeting) {
        port_fence(&r->p);
        return;
    }
    meeting_come(r->meeting, stage);
    meeting_wait(r->meeting, stage, r->p.n);
}

/* Until all have spoken: a peer may still need an answer to connect. */
static void linger(struct rank *r)
{
    if (!r->meeting) {
        port_fence(&r->p);
        return;
    }
    meeting_come(r->meeting, MEETING_SPOKEN);
    while (!meeting_is_full(r->meeting, MEETING_SPOKEN, r->p.n)) {
        port_poll(&r->p);
        nanosleep(&(struct timespec){.tv_nsec = (long)POLL_US * 1000 * r->p.n}, NULL);
    }
}

/* The paper's Figure 6: ranks 0 and 1, while all others sleep outside of the library; then all pairs, where each rank
 * has a processor. */
static void play_all(struct rank *r)
{
    const int me = r->p.rank, other = me ^ 1, processors = play_processors();

    if (me < 2) {
        (void)play_bind(me); /* one processor is enough, and says less */
        play(&r->p, other, r->one);
        r->timed_one = me == 0;
    }
    meet(r, MEETING_PLAYED);
    if (r->p.n > processors || other >= r->p.n)
        return;
    (void)(me < 2 || play_bind(me));
    play(&r->p, other, r->all);
    r->timed_all = me % 2 == 0;
}

static json_t *kernel(const struct st_process_memory *m)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "private", (json_int_t)m->private_bytes, "images",
                     (json_int_t)m->images, "proportional", (json_int_t)m->proportional, "page_tables",
                     (json_int_t)m->page_tables, "device", (json_int_t)m->device, "device_share",
                     (json_int_t)m->device_share);
}

static json_t *times(const double *us)
{
    json_t *list = json_array();

    for (int b = 0; b < PLAY_BATCHES; b++)
        json_array_append_new(list, json_real(us[b]));
    return list;
}

static bool leave(struct rank *r, const struct st_process_memory *m, json_t *ours)
{
    char path[4200], version[160];

    port_version(version, sizeof version);
    json_t *j = json_pack("{s:s, s:f, s:f, s:o, s:o}", "library", version, "init_us", r->init_us, "first_us",
                          r->first_us, "kernel", kernel(m), "ours", ours);
    if (r->p.rank == 0)
        json_object_set_new(j, "configuration", port_parameters(&r->p));
    if (r->timed_one)
        json_object_set_new(j, "latency_us", times(r->one));
    if (r->timed_all)
        json_object_set_new(j, "all_pairs_us", times(r->all));
    snprintf(path, sizeof path, "%s/rank.%d.json", r->folder, r->p.rank);
    bool well = json_dump_file(j, path, JSON_COMPACT) == 0;
    if (!well)
        fprintf(stderr, "strata-memscale: rank %d: %s cannot be written\n", r->p.rank, path);
    json_decref(j);
    return well;
}

static bool measure(struct rank *r)
{
    struct st_process_memory m = {0};

    speak(r);
    linger(r);
    if (st_process_memory(0, &m) != STRATA_OK) {
        fprintf(stderr, "strata-memscale: rank %d: /proc/self/smaps cannot be read\n", r->p.rank);
        return false;
    }
    json_t *ours = port_ours(&r->p);
    meet(r, MEETING_MEASURED);
    if (r->pattern != HELLO && r->p.n > 1)
        play_all(r);
    return leave(r, &m, ours);
}

/* PATTERN FOLDER [WORLD RANKS | fence]: in a virtual world of so many ranks; on several machines. */
int rank_run(int argc, char **argv)
{
    struct rank r = {.folder = argc >= 3 && argc <= 5 ? argv[2] : NULL};
    const int world = argc == 5 ? atoi(argv[3]) : 0, n_real = argc == 5 ? atoi(argv[4]) : 0;
    int pattern = 0;

    while (r.folder && pattern < N_PATTERNS && strcmp(argv[1], pattern_names[pattern]) != 0)
        pattern++;
    if (!r.folder || pattern == N_PATTERNS || (argc == 5 && (n_real < 1 || world < n_real)) ||
        (argc == 4 && strcmp(argv[3], "fence") != 0))
        return EXIT_USER;
    r.pattern = (enum pattern)pattern;
    r.meeting = argc == 4 ? NULL : meeting_open(r.folder);
    if (!r.meeting && argc != 4) {
        fprintf(stderr, "strata-memscale: %s/meeting cannot be mapped\n", r.folder);
        return EXIT_FAILURE;
    }
    const uint64_t begin = st_now_ns();
    if (!port_begin(&r.p, r.folder, r.meeting, world, n_real))
        return EXIT_FAILURE;
    r.init_us = since_us(begin);
    bool well = measure(&r);
    return port_end(&r.p) && well ? EXIT_SUCCESS : EXIT_FAILURE;
}

#ifdef MPI_TWIN
int main(int argc, char **argv)
{
    return rank_run(argc, argv);
}
#endif

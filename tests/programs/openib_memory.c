/* What a rank's memory is before strata_init, after it, with one connected peer, with all, and when a window of
 * messages went to each and came from each: bench/openib.sh, tests/openib/memory/footprint_test.sh,
 * footprint_guest_test.sh. Rank 0 prints what each stage added, in kB: anonymous memory, what is mapped from the device
 * and resident, their sum, what the transport says of itself, and what all of Strata does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/strata.h>
#include "support/rollup.h"

enum { TAG = 7, ALL, WINDOWS, WINDOW = 64, BYTES = 1024, MOST_RANKS = 256 };

struct figures {
    long anonymous, device, reported, all;
};

static void reported_line(void *arg, const strata_mem_line_t *line)
{
    struct figures *f = arg;

    if (!line->user)
        f->all += (long)line->bytes;
    if (strcmp(line->component, "btl_openib") == 0)
        f->reported += (long)line->bytes;
}

/* Rings of the device are mapped from its file, or from softhca's. */
static long device_kb(void)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    long sum = 0, kb;
    int device = 0;

    while (f && fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            device = strstr(line, "uverbs") || (strstr(line, "softhca") && !strstr(line, ".so"));
        else if (device && sscanf(line, "Rss: %ld", &kb) == 1)
            sum += kb;
    }
    if (f)
        fclose(f);
    return sum;
}

static struct figures now(strata_t *s)
{
    struct figures f = {rollup_kb("Anonymous:"), device_kb(), 0, 0};

    if (s)
        (void)strata_mem_report(s, reported_line, &f);
    f.reported /= 1024;
    f.all /= 1024;
    return f;
}

static void show(const char *stage, struct figures a, struct figures b, int n)
{
    double anonymous = (double)(b.anonymous - a.anonymous) / n, device = (double)(b.device - a.device) / n;

    printf("%-27s:%12.1f%12.1f%12.1f%12.1f%12.1f\n", stage, anonymous, device, anonymous + device,
           (double)(b.reported - a.reported) / n, (double)(b.all - a.all) / n);
}

static int exchange(strata_comm_t *world, int to, int from)
{
    char out[8] = "", in[8];

    return strata_sendrecv(world, out, sizeof out, to, TAG, in, sizeof in, from, TAG, STRATA_STATUS_IGNORE);
}

/* Everybody has done the stage before anybody looks. */
static int meet(strata_comm_t *world, int rank, int n)
{
    int rc = STRATA_OK;

    for (int d = 1; d < n && rc == STRATA_OK; d *= 2)
        rc = exchange(world, (rank + d) % n, (rank - d + n) % n);
    return rc;
}

/* Rank 0 lets the others go, one after the other: nobody may connect to it before it has looked. */
static int let_go(strata_comm_t *world, int rank, int n)
{
    int rc = STRATA_OK;

    for (int r = 1; r < n && rc == STRATA_OK; r++)
        if (rank == 0)
            rc = strata_send(world, "", 0, r, TAG);
        else if (rank == r)
            rc = strata_recv(world, NULL, 0, 0, TAG, STRATA_STATUS_IGNORE);
    return rc;
}

/* One message to each and one from each. What they are received with is posted before rank 0 looks the last time, so
 * that copies of messages that came too early, of which there are as many as the ranks are out of step, count nowhere.
 * That a message came from each says that each is connected. */
static int all_to_all(strata_comm_t *world, int rank, int n, strata_request_t **q)
{
    int rc = let_go(world, rank, n);

    for (int d = 1; d < n && rc == STRATA_OK; d++)
        rc = strata_send(world, "", 0, (rank + d) % n, ALL);
    if (rc == STRATA_OK)
        rc = strata_waitall((size_t)n - 1, q, NULL);
    return rc;
}

static char out[BYTES], in[WINDOW][BYTES];

/* A window of messages to each and one from each, one peer after the other. */
static int windows(strata_comm_t *world, int rank, int n)
{
    strata_request_t *q[2 * WINDOW];
    int rc = STRATA_OK;

    for (int d = 1; d < n && rc == STRATA_OK; d++) {
        int i = 0;
        for (; i < WINDOW && rc == STRATA_OK; i++)
            rc = strata_irecv(world, in[i], BYTES, (rank - d + n) % n, WINDOWS, &q[i]);
        if (rc == STRATA_OK)
            rc = meet(world, rank, n);
        for (; i < 2 * WINDOW && rc == STRATA_OK; i++)
            rc = strata_isend(world, out, BYTES, (rank + d) % n, WINDOWS, &q[i]);
        if (rc == STRATA_OK)
            rc = strata_waitall(2 * WINDOW, q, NULL);
    }
    return rc;
}

int main(void)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_request_t *q[MOST_RANKS];
    strata_t *s = NULL;
    struct figures before, idle, one, all, busy;
    char why[512] = "";
    int rc;

    /* Not to be counted. */
    memset(in, 1, sizeof in);
    memset(out, 1, sizeof out);
    before = now(NULL);

    config.error_text = why;
    config.error_text_size = sizeof why;
    rc = strata_init(&config, &s);
    if (rc != STRATA_OK) {
        fprintf(stderr, "openib_memory: %s\n", why);
        return 1;
    }
    int rank = strata_rank(s), n = strata_size(s);
    strata_comm_t *world = strata_world(s);
    if (n < 4 || n % 2 || n > MOST_RANKS) {
        fprintf(stderr, "openib_memory: an even number of ranks, 4 to %d\n", MOST_RANKS);
        return 2;
    }
    idle = now(s);
    for (int i = 0; i < 4 && rc == STRATA_OK; i++)
        rc = exchange(world, rank ^ 1, rank ^ 1);
    for (int d = 1; d < n && rc == STRATA_OK; d++)
        rc = strata_irecv(world, NULL, 0, (rank - d + n) % n, ALL, &q[d - 1]);
    one = now(s);
    if (rc == STRATA_OK)
        rc = all_to_all(world, rank, n, q);
    all = now(s);
    if (rc == STRATA_OK)
        rc = windows(world, rank, n);
    if (rc == STRATA_OK)
        rc = meet(world, rank, n);
    busy = now(s);
    if (rc != STRATA_OK)
        fprintf(stderr, "openib_memory: rank %d: %s\n", rank, strata_strerror(rc));
    else if (rank == 0) {
        show("idle context, libraries too", before, idle, 1);
        show("one peer", idle, one, 1);
        show("each further", one, all, n - 2);
        show("each, after windows of 64", one, busy, n - 2);
    }
    return strata_finalize(s) == STRATA_OK && rc == STRATA_OK ? 0 : 1;
}

/* What a rank's memory is before strata_init, after it, with one connected peer and with all: bench/openib.sh and
 * tests/openib/footprint_test.sh. Rank 0 prints what each stage added, in kB: anonymous memory, what is mapped from the
 * device and resident, their sum, what the transport says of itself, and what all of Strata does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/strata.h>

enum { TAG = 7 };

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

/* Counted page by page: the sums in /proc/self/status may be late by many pages. */
static long anonymous_kb(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kb = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Anonymous: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

static struct figures now(strata_t *s)
{
    struct figures f = {anonymous_kb(), device_kb(), 0, 0};

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
static int meet(strata_comm_t *world, int rank, int n, int only_neighbour)
{
    int rc = STRATA_OK;

    if (only_neighbour)
        return exchange(world, rank ^ 1, rank ^ 1);
    for (int d = 1; d < n && rc == STRATA_OK; d *= 2)
        rc = exchange(world, (rank + d) % n, (rank - d + n) % n);
    return rc;
}

int main(void)
{
    strata_config_t config = STRATA_CONFIG_INIT;
    strata_t *s = NULL;
    struct figures before = now(NULL), idle, one, all;
    char why[512] = "";
    int rc;

    config.error_text = why;
    config.error_text_size = sizeof why;
    rc = strata_init(&config, &s);
    if (rc != STRATA_OK) {
        fprintf(stderr, "openib_memory: %s\n", why);
        return 1;
    }
    int rank = strata_rank(s), n = strata_size(s);
    strata_comm_t *world = strata_world(s);
    if (n < 4 || n % 2) {
        fprintf(stderr, "openib_memory: an even number of ranks, 4 or more\n");
        return 2;
    }
    idle = now(s);
    for (int i = 0; i < 4 && rc == STRATA_OK; i++)
        rc = meet(world, rank, n, 1);
    one = now(s);
    /* Nobody may connect to rank 0 before it has looked. */
    for (int r = 1; r < n && rc == STRATA_OK; r++)
        if (rank == 0)
            rc = strata_send(world, "", 0, r, TAG);
        else if (rank == r)
            rc = strata_recv(world, why, 0, 0, TAG, STRATA_STATUS_IGNORE);
    for (int d = 1; d < n && rc == STRATA_OK; d++)
        rc = exchange(world, (rank + d) % n, (rank - d + n) % n);
    if (rc == STRATA_OK)
        rc = meet(world, rank, n, 0);
    all = now(s);
    if (rc != STRATA_OK)
        fprintf(stderr, "openib_memory: rank %d: %s\n", rank, strata_strerror(rc));
    else if (rank == 0) {
        show("idle context, libraries too", before, idle, 1);
        show("one peer", idle, one, 1);
        show("each further", one, all, n - 2);
    }
    return strata_finalize(s) == STRATA_OK && rc == STRATA_OK ? 0 : 1;
}

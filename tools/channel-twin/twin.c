/* A rank of strata-perf channel over the library of PORT: twin WAY RANKS pair|farm|tasks|sleep SECONDS CPUS. Rank 0
 * prints lines "TABLE BYTES-OR-WORKERS VALUE": microseconds a message, seconds of a farm. CPUS: where ranks run,
 * 0,1,..., or none. */
#define _GNU_SOURCE 1
#include <sched.h>
#include <stdbool.h>
#include PORT
#include "farm.h"
#include "pair.h"

/* Rank r on the r-th processor of the list. */
static void bind_rank(const char *list, int rank)
{
    cpu_set_t set;
    char *end;

    for (long cpu = strtol(list, &end, 10); end != list; cpu = strtol(list, &end, 10), rank--) {
        if (rank == 0) {
            CPU_ZERO(&set);
            CPU_SET((size_t)cpu, &set);
            (void)sched_setaffinity(0, sizeof(set), &set);
        }
        list = *end ? end + 1 : end;
    }
}

/* Rank 0 has all that it waits for: nobody closes before, since closing may drop what has not left. */
static void part(struct port *p)
{
    char all = 1;

    for (int i = 1; p->rank == 0 && i < p->n; i++)
        port_send(p, i, &all, 1);
    if (p->rank != 0)
        port_recv(p, &all, 1);
}

int main(int argc, char **argv)
{
    struct port p = {.rank = 0};

    if (argc != 6 || atoi(argv[2]) < 2) {
        fprintf(stderr, "usage: %s WAY RANKS pair|farm|tasks|sleep SECONDS CPUS; strata-perf channel starts it\n",
                argv[0]);
        return 2;
    }
    port_open(&p, argv[1], atoi(argv[2]));
    if (p.n != atoi(argv[2])) {
        fprintf(stderr, "there are %d ranks, not %s\n", p.n, argv[2]);
        return 2;
    }
    bind_rank(argv[5], p.rank);
    if (strcmp(argv[3], "pair") == 0)
        pair_table(&p, atof(argv[4]));
    else
        farm_table(&p, strcmp(argv[3], "farm") == 0    ? FARM_SIMULATE
                       : strcmp(argv[3], "tasks") == 0 ? FARM_TASKS
                                                       : FARM_SLEEP);
    part(&p);
    port_close(&p);
    return 0;
}

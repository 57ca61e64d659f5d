/* Kernels of strata-memscale srq: patterns of communication whose time says what receive queues cost (paper, Tables 2
 * and 3). Our own programs with the class sizes of the NAS Parallel Benchmarks (Bailey et al., 1994), which they do not
 * replace: times are for comparing configurations on one machine. */
#ifndef MEMSCALE_KERNEL_H
#define MEMSCALE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/coll.h>

struct kernel {
    strata_comm_t *world;
    int rank, n;
    char size;      /* class: S, W, A */
    double seconds; /* out: the measured part, of the slowest rank */
    bool right;     /* out: the result was verified */
};

struct kernel_row {
    const char *name, *about;
    void (*run)(struct kernel *k);
};
extern const struct kernel_row kernel_rows[];
extern const size_t kernel_n_rows;
const struct kernel_row *kernel_named(const char *name); /* NULL: there is none */

/* kernel_tools.c: collectives; a failure ends the process with a message. */
void kernel_coll(const struct kernel *k, const strata_coll_t *c);
void kernel_barrier(const struct kernel *k);
double kernel_sum(const struct kernel *k, double v);
double kernel_most(const struct kernel *k, double v);
void kernel_transfer(const struct kernel *k, const void *send, void *recv, size_t bytes); /* alltoall of blocks */
void *kernel_memory(size_t count, size_t element);                                        /* zeroed */
int kernel_of_class(const struct kernel *k, int s, int w, int a);
/* A reproducible sequence: the state's next number (splitmix64). */
uint64_t kernel_random(uint64_t *state);
/* Between barriers: st_now_ns at the begin; sets k->seconds. */
uint64_t kernel_begin(const struct kernel *k);
void kernel_end(struct kernel *k, uint64_t begin);

void kernel_is(struct kernel *k);
void kernel_ft(struct kernel *k);
void kernel_cg(struct kernel *k);
void kernel_alltoall(struct kernel *k);
void kernel_incast(struct kernel *k);

#endif

/* What the kernels share. */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/clock.h>

const struct kernel_row kernel_rows[] = {
    {"alltoall", "everybody sends 1 KiB to everybody, nonblocking", kernel_alltoall},
    {"incast", "everybody sends to rank 0", kernel_incast},
    {"is", "integer sort by buckets", kernel_is},
    {"ft", "3-D fast Fourier transforms", kernel_ft},
    {"cg", "conjugate gradients of a sparse matrix", kernel_cg},
};
const size_t kernel_n_rows = sizeof kernel_rows / sizeof *kernel_rows;

const struct kernel_row *kernel_named(const char *name)
{
    for (size_t i = 0; i < kernel_n_rows; i++)
        if (strcmp(kernel_rows[i].name, name) == 0)
            return &kernel_rows[i];
    return NULL;
}

void kernel_coll(const struct kernel *k, const strata_coll_t *c)
{
    int rc = strata_coll(k->world, c);

    if (rc == STRATA_OK)
        return;
    fprintf(stderr, "strata-memscale: rank %d: collective %d: %s\n", k->rank, (int)c->kind, strata_strerror(rc));
    exit(EXIT_FAILURE);
}

void kernel_barrier(const struct kernel *k)
{
    const strata_coll_t c = STRATA_COLL_INIT(STRATA_BARRIER);

    kernel_coll(k, &c);
}

static void add(void *arg, const void *in, void *inout, size_t count)
{
    const double *a = in;
    double *b = inout;

    (void)arg;
    for (size_t i = 0; i < count; i++)
        b[i] += a[i];
}

static void larger(void *arg, const void *in, void *inout, size_t count)
{
    const double *a = in;
    double *b = inout;

    (void)arg;
    for (size_t i = 0; i < count; i++)
        b[i] = a[i] > b[i] ? a[i] : b[i];
}

static double reduce(const struct kernel *k, double v, strata_reduce_fn how)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLREDUCE);
    double out = 0;

    c.send = &v;
    c.recv = &out;
    c.count = 1;
    c.element = sizeof v;
    c.reduce = how;
    kernel_coll(k, &c);
    return out;
}

double kernel_sum(const struct kernel *k, double v)
{
    return reduce(k, v, add);
}

double kernel_most(const struct kernel *k, double v)
{
    return reduce(k, v, larger);
}

void kernel_transfer(const struct kernel *k, const void *send, void *recv, size_t bytes)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLTOALL);

    c.send = send;
    c.recv = recv;
    c.count = bytes;
    kernel_coll(k, &c);
}

void *kernel_memory(size_t count, size_t element)
{
    void *p = calloc(count ? count : 1, element);

    if (p)
        return p;
    fprintf(stderr, "strata-memscale: no memory for %zu times %zu bytes\n", count, element);
    exit(EXIT_FAILURE);
}

int kernel_of_class(const struct kernel *k, int s, int w, int a)
{
    return k->size == 'A' ? a : k->size == 'W' ? w : s;
}

uint64_t kernel_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t kernel_begin(const struct kernel *k)
{
    kernel_barrier(k);
    return st_now_ns();
}

void kernel_end(struct kernel *k, uint64_t begin)
{
    k->seconds = kernel_most(k, (double)(st_now_ns() - begin) / 1e9);
}

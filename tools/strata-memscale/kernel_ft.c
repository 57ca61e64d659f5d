/* 3-D fast Fourier transforms: planes of z by rank, and an alltoall that turns them to planes of x. Forward and back,
 * and the result is compared with the input. */
#include "kernel.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6, LONGEST = 256 };

struct grid {
    int nx, ny, nz;                /* powers of two */
    double complex *a, *b;         /* nx ny nz / n elements each */
    double complex roots[LONGEST]; /* exp(-2 pi i j / LONGEST) */
};

/* In place, radix 2, of elements `stride` apart; not scaled. */
static void transform(const struct grid *g, double complex *v, int n, size_t stride, bool back)
{
    double complex line[LONGEST];

    for (int i = 0, j = 0; i < n; i++) { /* j is i with its bits reversed */
        line[j] = v[(size_t)i * stride];
        int bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j |= bit;
    }
    for (int half = 1; half < n; half *= 2) {
        for (int i = 0; i < n; i += 2 * half) {
            for (int j = 0; j < half; j++) {
                double complex w = g->roots[j * (LONGEST / 2 / half)];
                double complex x = line[i + j], y = line[i + j + half] * (back ? conj(w) : w);
                line[i + j] = x + y;
                line[i + j + half] = x - y;
            }
        }
    }
    for (int i = 0; i < n; i++)
        v[(size_t)i * stride] = line[i];
}

/* a: [z of this rank][y][x]. */
static void transform_planes(const struct kernel *k, struct grid *g, bool back)
{
    const size_t plane = (size_t)g->nx * (size_t)g->ny;

    for (int z = 0; z < g->nz / k->n; z++) {
        double complex *p = g->a + (size_t)z * plane;
        for (int y = 0; y < g->ny; y++)
            transform(g, p + (size_t)y * (size_t)g->nx, g->nx, 1, back);
        for (int x = 0; x < g->nx; x++)
            transform(g, p + x, g->ny, (size_t)g->nx, back);
    }
}

/* Block [to] of b: [z of this rank][y][x of rank `to`]; the other way, block [from] of what came, back into a. */
static void pack(const struct kernel *k, struct grid *g, bool back)
{
    const int mine = g->nz / k->n, part = g->nx / k->n;
    double complex *p = g->b;

    for (int r = 0; r < k->n; r++)
        for (int z = 0; z < mine; z++)
            for (int y = 0; y < g->ny; y++, p += part) {
                double complex *line =
                    g->a + ((size_t)z * (size_t)g->ny + (size_t)y) * (size_t)g->nx + (size_t)r * (size_t)part;
                if (back)
                    memcpy(line, p, (size_t)part * sizeof *p);
                else
                    memcpy(p, line, (size_t)part * sizeof *p);
            }
}

/* What has come: [z][y][x of this rank]; along z. */
static void transform_columns(const struct kernel *k, struct grid *g, bool back)
{
    const size_t stride = (size_t)g->ny * (size_t)(g->nx / k->n);

    for (size_t i = 0; i < stride; i++)
        transform(g, g->a + i, g->nz, stride, back);
}

static void there_and_back(const struct kernel *k, struct grid *g)
{
    const size_t block = (size_t)g->nx * (size_t)g->ny * (size_t)g->nz / (size_t)k->n / (size_t)k->n * sizeof *g->a;

    transform_planes(k, g, false);
    pack(k, g, false);
    kernel_transfer(k, g->b, g->a, block);
    transform_columns(k, g, false);
    transform_columns(k, g, true);
    kernel_transfer(k, g->a, g->b, block);
    pack(k, g, true);
    transform_planes(k, g, true);
}

void kernel_ft(struct kernel *k)
{
    struct grid g = {.nx = kernel_of_class(k, 64, 128, 256),
                     .ny = kernel_of_class(k, 64, 128, 256),
                     .nz = kernel_of_class(k, 64, 32, 128)};
    const size_t total = (size_t)g.nx * (size_t)g.ny * (size_t)g.nz, n = total / (size_t)k->n;
    uint64_t state = 314159265u + (uint64_t)k->rank;
    double wrong = 0;

    if (g.nx % k->n || g.nz % k->n) {
        if (k->rank == 0)
            fprintf(stderr, "strata-memscale: ft: %d ranks do not divide a grid of %d by %d by %d\n", k->n, g.nx, g.ny,
                    g.nz);
        k->right = false;
        return;
    }
    g.a = kernel_memory(n, sizeof *g.a);
    g.b = kernel_memory(n, sizeof *g.b);
    double complex *first = kernel_memory(n, sizeof *first);
    for (int i = 0; i < LONGEST; i++)
        g.roots[i] = cexp(-2 * M_PI * I * i / LONGEST);
    for (size_t i = 0; i < n; i++)
        first[i] =
            (double)(kernel_random(&state) >> 11) * 0x1p-53 + I * (double)(kernel_random(&state) >> 11) * 0x1p-53;
    const uint64_t begin = kernel_begin(k);
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(g.a, first, n * sizeof *first);
        there_and_back(k, &g);
    }
    kernel_end(k, begin);
    for (size_t i = 0; i < n; i++)
        wrong = fmax(wrong, cabs(g.a[i] / (double)total - first[i]));
    k->right = kernel_most(k, wrong) < 1e-10;
    free(g.a);
    free(g.b);
    free(first);
}

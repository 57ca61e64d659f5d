/* Conjugate gradients: rows of a sparse, symmetric, diagonally dominant matrix by rank; each product needs the whole
 * vector (allgatherv), each step two sums. */
#include "kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 25 };

struct matrix {
    size_t rows, first, mine; /* in all; this rank's */
    int band;                 /* pairs of entries beside the diagonal */
    size_t *offset;           /* of each pair: entries (i, i + offset) and (i, i - offset), modulo rows */
    double *value;            /* the same value for all rows of a pair */
    double diagonal;
    size_t *counts, *firsts; /* rows by rank */
    double *whole;           /* the vector that is multiplied */
};

static void matrix_make(const struct kernel *k, struct matrix *m)
{
    uint64_t state = 141421356u; /* the same at all ranks */

    m->rows = (size_t)kernel_of_class(k, 1400, 7000, 14000);
    m->band = kernel_of_class(k, 24, 32, 60); /* about the entries of a row there */
    m->offset = kernel_memory((size_t)m->band, sizeof *m->offset);
    m->value = kernel_memory((size_t)m->band, sizeof *m->value);
    m->counts = kernel_memory(2 * (size_t)k->n, sizeof *m->counts);
    m->firsts = m->counts + k->n;
    m->whole = kernel_memory(m->rows, sizeof *m->whole);
    m->diagonal = 0.1;
    for (int i = 0; i < m->band; i++) {
        m->offset[i] = 1 + kernel_random(&state) % (m->rows / 2 - 1);
        m->value[i] = -(double)(kernel_random(&state) >> 11) * 0x1p-53;
        m->diagonal += 2 * fabs(m->value[i]);
    }
    for (int r = 0; r < k->n; r++) {
        m->firsts[r] = m->rows * (size_t)r / (size_t)k->n;
        m->counts[r] = m->rows * (size_t)(r + 1) / (size_t)k->n - m->firsts[r];
    }
    m->first = m->firsts[k->rank];
    m->mine = m->counts[k->rank];
}

static void matrix_free(struct matrix *m)
{
    free(m->offset);
    free(m->value);
    free(m->counts);
    free(m->whole);
}

/* out = A v, of this rank's rows. */
static void multiply(const struct kernel *k, struct matrix *m, const double *v, double *out)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLGATHERV);

    c.send = v;
    c.recv = m->whole;
    c.count = m->mine;
    c.element = sizeof *v;
    c.recv_counts = m->counts;
    c.recv_offsets = m->firsts;
    kernel_coll(k, &c);
    for (size_t i = 0; i < m->mine; i++) {
        const size_t row = m->first + i;
        double sum = m->diagonal * m->whole[row];
        for (int j = 0; j < m->band; j++) {
            size_t up = row + m->offset[j], down = row + m->rows - m->offset[j];
            sum += m->value[j] *
                   (m->whole[up < m->rows ? up : up - m->rows] + m->whole[down < m->rows ? down : down - m->rows]);
        }
        out[i] = sum;
    }
}

static double dot(const struct kernel *k, const struct matrix *m, const double *a, const double *b)
{
    double sum = 0;

    for (size_t i = 0; i < m->mine; i++)
        sum += a[i] * b[i];
    return kernel_sum(k, sum);
}

/* x from 0 towards A x = b, b = 1 to 7 in turn. */
static void solve(const struct kernel *k, struct matrix *m, double *x, double *r, double *p, double *q)
{
    for (size_t i = 0; i < m->mine; i++) {
        x[i] = 0;
        r[i] = p[i] = 1 + (double)((m->first + i) % 7);
    }
    double rho = dot(k, m, r, r);
    for (int step = 0; step < STEPS; step++) {
        multiply(k, m, p, q);
        const double alpha = rho / dot(k, m, p, q);
        for (size_t i = 0; i < m->mine; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        const double next = dot(k, m, r, r), beta = next / rho;
        rho = next;
        for (size_t i = 0; i < m->mine; i++)
            p[i] = r[i] + beta * p[i];
    }
}

void kernel_cg(struct kernel *k)
{
    const int rounds = 15;
    struct matrix m;
    double wrong = 0, right = 0;

    matrix_make(k, &m);
    double *x = kernel_memory(4 * m.mine, sizeof *x), *r = x + m.mine, *p = r + m.mine, *q = p + m.mine;
    const uint64_t begin = kernel_begin(k);
    for (int round = 0; round < rounds; round++)
        solve(k, &m, x, r, p, q);
    kernel_end(k, begin);
    multiply(k, &m, x, q);
    for (size_t i = 0; i < m.mine; i++) { /* the residual anew, not the one that was carried along */
        const double b = 1 + (double)((m.first + i) % 7);
        wrong += (q[i] - b) * (q[i] - b);
        right += b * b;
    }
    wrong = kernel_sum(k, wrong);
    right = kernel_sum(k, right);
    k->right = isfinite(wrong) && sqrt(wrong / right) < 1e-3;
    free(x);
    matrix_free(&m);
}

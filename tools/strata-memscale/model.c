#include "model.h"

#include <math.h>
#include <string.h>

/* Errors below are noise: pages that one run touches and the next one does not. */
#define NOISE 0.002

double model_bytes(const struct model *m, const double x[MODEL_TERMS])
{
    double sum = 0;

    for (int t = 0; t < MODEL_TERMS; t++)
        sum += m->size[t] * x[t];
    return sum;
}

/* Gauss-Jordan with pivots; a is k rows of k + 1. False: singular. */
static bool solve(double a[MODEL_TERMS][MODEL_TERMS + 1], int k)
{
    for (int c = 0; c < k; c++) {
        int pivot = c;
        for (int r = c + 1; r < k; r++)
            if (fabs(a[r][c]) > fabs(a[pivot][c]))
                pivot = r;
        double row[MODEL_TERMS + 1];
        memcpy(row, a[pivot], sizeof row);
        memcpy(a[pivot], a[c], sizeof row);
        memcpy(a[c], row, sizeof row);
        if (fabs(a[c][c]) < 1e-9)
            return false;
        for (int r = 0; r < k; r++) {
            double factor = a[r][c] / a[c][c];
            for (int i = c; r != c && i <= k; i++)
                a[r][i] -= factor * a[c][i];
        }
    }
    return true;
}

/* Terms are scaled to their largest value first, so that 1e-9 means the same for all of them. */
static bool fit_terms(struct model *m, unsigned set, const struct model_point *points, size_t n)
{
    double a[MODEL_TERMS][MODEL_TERMS + 1] = {{0}}, scale[MODEL_TERMS];
    int terms[MODEL_TERMS], k = 0;

    for (int t = 0; t < MODEL_TERMS; t++) {
        double largest = 0;
        if (!(set & 1u << t))
            continue;
        for (size_t p = 0; p < n; p++)
            largest = fmax(largest, points[p].x[t]);
        if (largest <= 0)
            return false;
        scale[k] = largest;
        terms[k++] = t;
    }
    for (size_t p = 0; p < n; p++) {
        double x[MODEL_TERMS], weight = 1 / fmax(points[p].bytes, 1);
        for (int i = 0; i < k; i++)
            x[i] = points[p].x[terms[i]] / scale[i] * weight;
        for (int i = 0; i < k; i++) {
            for (int j = 0; j < k; j++)
                a[i][j] += x[i] * x[j] * 1e12;
            a[i][k] += x[i] * points[p].bytes * weight * 1e12;
        }
    }
    if (!solve(a, k))
        return false;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < k; i++) {
        m->size[terms[i]] = a[i][k] / a[i][i] / scale[i];
        if (m->size[terms[i]] < 0)
            return false;
    }
    return true;
}

static double criterion(const struct model *m, int terms, const struct model_point *points, size_t n)
{
    double sum = 0, free_points = (double)n - terms - 1;

    if (free_points <= 0 && terms > 1)
        return INFINITY;
    for (size_t p = 0; p < n; p++) {
        double wrong = model_bytes(m, points[p].x) / fmax(points[p].bytes, 1) - 1;
        sum += wrong * wrong;
    }
    double penalty = 2 * terms + (free_points > 0 ? 2.0 * terms * (terms + 1) / free_points : 0);
    return (double)n * log(sum / (double)n + NOISE * NOISE) + penalty;
}

/* A logarithm beside the peers only: few points look like one, and each peer costs something. */
static bool lacks_peers(unsigned set, unsigned allowed)
{
    return (set & 1u << MODEL_LOG) && (allowed & ~set & 1u << MODEL_PEER);
}

bool model_fit(struct model *m, unsigned allowed, const struct model_point *points, size_t n)
{
    double least = INFINITY;

    for (unsigned set = 1; n >= 2 && set < 1u << MODEL_TERMS; set++) {
        struct model one;
        if (set & ~allowed || lacks_peers(set, allowed) || !fit_terms(&one, set, points, n))
            continue;
        double now = criterion(&one, __builtin_popcount(set), points, n);
        if (now < least) {
            least = now;
            *m = one;
        }
    }
    return isfinite(least);
}

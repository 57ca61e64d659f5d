/* Arrival of ranks at a collective: delays, and what times of arrival and exit say. */
#include "coll_arrivals.h"

#include <stdlib.h>

#include "report.h"

void coll_cell_make(struct coll_cell *cell, size_t batches)
{
    double *all = calloc(5 * batches, sizeof *all);
    cell->ok = all != NULL;
    cell->n = batches;
    cell->in_call = all;
    cell->after = all + batches;
    cell->skew = all + 2 * batches;
    cell->exit_skew = all + 3 * batches;
    cell->last_call = all + 4 * batches;
}

void coll_cell_free(struct coll_cell *cell)
{
    free(cell->in_call);
}

void coll_cell_add(struct coll_cell *cell, size_t batch, const struct coll_times *times, size_t calls, size_t ranks)
{
    double in_call = 0, after = 0, skew = 0, exit_skew = 0, last_call = 0, us = 1e6 / (double)calls;
    for (size_t i = 0; i < calls; i++) {
        struct coll_times first = times[i], last = times[i], latest = times[i];
        for (size_t r = 0; r < ranks; r++) {
            struct coll_times t = times[r * calls + i];
            in_call += (t.exit - t.arrival) / (double)ranks;
            first.arrival = t.arrival < first.arrival ? t.arrival : first.arrival;
            first.exit = t.exit < first.exit ? t.exit : first.exit;
            latest = t.arrival > latest.arrival ? t : latest;
            last.arrival = t.arrival > last.arrival ? t.arrival : last.arrival;
            last.exit = t.exit > last.exit ? t.exit : last.exit;
        }
        after += last.exit - last.arrival;
        skew += last.arrival - first.arrival;
        exit_skew += last.exit - first.exit;
        last_call += latest.exit - latest.arrival;
    }
    cell->in_call[batch] = in_call * us;
    cell->after[batch] = after * us;
    cell->skew[batch] = skew * us;
    cell->exit_skew[batch] = exit_skew * us;
    cell->last_call[batch] = last_call * us;
}

double coll_cell_skew(const struct coll_cell *cell)
{
    return perf_summarise(cell->skew, cell->n).median;
}

static uint64_t arrivals_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int coll_late_ranks(int ranks, unsigned late)
{
    int n = (int)(((unsigned)ranks * late + 50) / 100);
    return n < 1 ? 1 : n >= ranks && ranks > 1 ? ranks - 1 : n;
}

double coll_delay(size_t call, int rank, int ranks, unsigned late, double longest)
{
    if (late) {
        int turn = (int)((size_t)rank + call) % ranks;
        return turn < coll_late_ranks(ranks, late) ? longest : 0;
    }
    uint64_t x = arrivals_mix(((uint64_t)call << 20 | (uint64_t)rank) + 0x9e3779b97f4a7c15u);
    return longest * (double)(x >> 11) / (double)(1ull << 53);
}

/* The largest of n uniform numbers less the smallest is (n - 1) / (n + 1) on the mean. */
double coll_planned(int ranks, unsigned late, double longest)
{
    if (ranks < 2)
        return 0;
    return late ? longest : longest * (ranks - 1) / (ranks + 1);
}

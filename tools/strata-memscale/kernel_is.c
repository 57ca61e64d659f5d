/* Integer sort: keys go to the rank of their bucket by alltoallv, and are counted there. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10 };

struct sort {
    size_t n_keys, n_got; /* own keys; those of this rank's range */
    uint32_t range;       /* keys are below it */
    uint32_t *keys, *out, *got;
    size_t *counts, *offsets, *got_counts, *got_offsets; /* by rank */
};

static int bucket(const struct kernel *k, const struct sort *s, uint32_t key)
{
    return (int)((uint64_t)key * (uint64_t)k->n / s->range);
}

static size_t add_up(const size_t *counts, size_t *offsets, int n)
{
    size_t sum = 0;

    for (int r = 0; r < n; r++) {
        offsets[r] = sum;
        sum += counts[r];
    }
    return sum;
}

static void distribute(const struct kernel *k, struct sort *s)
{
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLTOALLV);

    memset(s->counts, 0, (size_t)k->n * sizeof *s->counts);
    for (size_t i = 0; i < s->n_keys; i++)
        s->counts[bucket(k, s, s->keys[i])]++;
    add_up(s->counts, s->offsets, k->n);
    for (size_t i = 0; i < s->n_keys; i++)
        s->out[s->offsets[bucket(k, s, s->keys[i])]++] = s->keys[i];
    add_up(s->counts, s->offsets, k->n);
    kernel_transfer(k, s->counts, s->got_counts, sizeof *s->counts);
    s->n_got = add_up(s->got_counts, s->got_offsets, k->n);
    free(s->got);
    s->got = kernel_memory(s->n_got, sizeof *s->got);
    c.send = s->out;
    c.recv = s->got;
    c.element = sizeof *s->got;
    c.send_counts = s->counts;
    c.send_offsets = s->offsets;
    c.recv_counts = s->got_counts;
    c.recv_offsets = s->got_offsets;
    kernel_coll(k, &c);
}

static void count_sort(const struct sort *s)
{
    uint32_t *many = kernel_memory(s->range, sizeof *many);
    size_t at = 0;

    for (size_t i = 0; i < s->n_got; i++)
        many[s->got[i]]++;
    for (uint32_t key = 0; key < s->range; key++)
        for (uint32_t i = 0; i < many[key]; i++)
            s->got[at++] = key;
    free(many);
}

/* In order within a rank and from rank to rank, and none is lost: number and sum of the keys. */
static bool sorted(const struct kernel *k, const struct sort *s)
{
    double before = 0, after = 0, wrong = 0;
    int32_t last = s->n_got ? (int32_t)s->got[s->n_got - 1] : -1;
    int32_t *all = kernel_memory((size_t)k->n, sizeof *all);
    strata_coll_t c = STRATA_COLL_INIT(STRATA_ALLGATHER);

    for (size_t i = 0; i < s->n_keys; i++)
        before += s->keys[i];
    for (size_t i = 0; i < s->n_got; i++) {
        after += s->got[i];
        wrong += i > 0 && s->got[i] < s->got[i - 1];
    }
    c.send = &last;
    c.recv = all;
    c.count = 1;
    c.element = sizeof last;
    kernel_coll(k, &c);
    for (int r = 0; r < k->rank; r++)
        wrong += s->n_got > 0 && all[r] > (int32_t)s->got[0];
    free(all);
    return kernel_sum(k, wrong) == 0 && kernel_sum(k, before) == kernel_sum(k, after) &&
           kernel_sum(k, (double)s->n_keys) == kernel_sum(k, (double)s->n_got);
}

void kernel_is(struct kernel *k)
{
    const size_t total = (size_t)1 << kernel_of_class(k, 16, 20, 23);
    struct sort s = {.range = 1u << kernel_of_class(k, 11, 16, 19)};
    uint64_t state = 271828182u + (uint64_t)k->rank;

    s.n_keys = total / (size_t)k->n + ((size_t)k->rank < total % (size_t)k->n);
    s.keys = kernel_memory(s.n_keys, sizeof *s.keys);
    s.out = kernel_memory(s.n_keys, sizeof *s.out);
    s.counts = kernel_memory(4 * (size_t)k->n, sizeof *s.counts);
    s.offsets = s.counts + k->n;
    s.got_counts = s.offsets + k->n;
    s.got_offsets = s.got_counts + k->n;
    for (size_t i = 0; i < s.n_keys; i++) { /* the mean of four: more in the middle, as there */
        uint64_t sum = 0;
        for (int part = 0; part < 4; part++)
            sum += kernel_random(&state) % s.range;
        s.keys[i] = (uint32_t)(sum / 4);
    }
    const uint64_t begin = kernel_begin(k);
    for (int round = 0; round < ROUNDS; round++) {
        distribute(k, &s);
        count_sort(&s);
    }
    kernel_end(k, begin);
    k->right = sorted(k, &s);
    free(s.keys);
    free(s.out);
    free(s.got);
    free(s.counts);
}

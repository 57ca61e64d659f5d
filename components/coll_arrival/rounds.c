/* Alltoall in rounds: messages, and blocks that travel on. In the forms that are not aware of arrival a round begins
 * when all messages of the rounds before have come. In the others no member waits for what a message does not need:
 * part -1 of each round leaves at once, part j as soon as the message of round j is here. */
#include "rounds.h"

#include <stdlib.h>
#include <string.h>

#include "op.h"

/* ---- which blocks ---- */

/* Distances of a part have bit k, no bit from j + 1 to k - 1, any above k. Below and with bit j there are so many. */
static size_t rounds_width(int j)
{
    return j < 0 ? 1 : (size_t)1 << j;
}

size_t arrival_rounds_part(int n, int k, int j)
{
    size_t count = 0, width = rounds_width(j), end = (size_t)n;
    for (size_t at = ((size_t)1 << k) + (j < 0 ? 0 : width); at < end; at += (size_t)2 << k)
        count += end - at < width ? end - at : width;
    return count;
}

size_t arrival_rounds_before(int n, int k, int j)
{
    size_t count = 0;
    for (int i = -1; i < j; i++)
        count += arrival_rounds_part(n, k, i);
    return count;
}

size_t arrival_rounds_place(int n, int k, int distance)
{
    int j = rounds_part_of(distance, k);
    size_t low = j < 0 ? 0 : (size_t)distance & (rounds_width(j) - 1);
    return arrival_rounds_before(n, k, j) + ((size_t)distance >> (k + 1)) * rounds_width(j) + low;
}

int arrival_rounds_distance(int k, int j, size_t i)
{
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): there are fewer than 32 rounds
    size_t width = rounds_width(j), high = i / width * ((size_t)2 << k);
    return (int)(high + ((size_t)1 << k) + (j < 0 ? 0 : width + i % width));
}

/* ---- members ---- */

static bool rounds_doubles(const struct op *op)
{
    enum arrival_form form = op->round_form;
    int n = op->slot->n;
    return (form == FORM_DOUBLING || form == FORM_PAP_DOUBLING) && (n & (n - 1)) == 0;
}

static int rounds_member(const struct op *op, int distance)
{
    int me = op->slot->base.group->comm->rank;
    return rounds_doubles(op) ? me ^ distance : (int)(((long)me + distance) % op->slot->n);
}

/* Whose blocks come from that distance. */
static int rounds_source(const struct op *op, int distance)
{
    return rounds_doubles(op) ? rounds_member(op, distance) : rounds_member(op, op->slot->n - distance);
}

/* ---- a call ---- */

int arrival_rounds_make(struct op *op)
{
    int n = op->slot->n, k_all = rounds_number(n);
    size_t bytes = 0;
    for (int k = 0; k < k_all; k++)
        bytes += arrival_rounds_before(n, k, k) * op->block;
    if (!op->crate) /* nodes have them, too */
        op->crate = calloc((size_t)n, sizeof(*op->crate));
    op->rows = malloc(2 * bytes);
    if (!op->crate || !op->rows)
        return STRATA_ERR_NOMEM;
    op->bytes += 2 * bytes + (size_t)n * sizeof(*op->crate);
    char *at = op->rows;
    for (int k = 0; k < k_all; k++) {
        size_t row = arrival_rounds_before(n, k, k) * op->block;
        struct crate *going = &op->crate[rounds_member(op, 1 << k)], *coming = &op->crate[rounds_source(op, 1 << k)];
        going->from = at;
        going->out = row;
        going->out_round = k;
        coming->to = at + row;
        coming->in = row;
        coming->in_round = k;
        at += 2 * row;
    }
    return STRATA_OK;
}

/* A block that goes on, or begins, in round k. */
static char *rounds_slot(const struct op *op, int k, int distance)
{
    const struct crate *going = &op->crate[rounds_member(op, 1 << k)];
    return (char *)(uintptr_t)going->from + arrival_rounds_place(op->slot->n, k, distance) * op->block;
}

void arrival_rounds_begin(struct op *op)
{
    for (int distance = 1; distance < op->slot->n; distance++) {
        const char *from = op->from + (size_t)rounds_member(op, distance) * op->block;
        memcpy(rounds_slot(op, rounds_next(distance, -1), distance), from, op->block);
    }
    op->rounds = true;
    op->outs_left = op->ins_left = rounds_number(op->slot->n);
    for (int m = 0; m < op->slot->n_all; m++) {
        op->out[m].state = m < op->slot->n && op->crate[m].out > 0 ? OUT_IDLE : OUT_DONE;
        op->in[m].done = m >= op->slot->n || op->crate[m].in == 0;
    }
}

void arrival_rounds_came(struct op *op, int m)
{
    const char *at = op->crate[m].to;
    int n = op->slot->n, k = op->crate[m].in_round;
    for (int j = -1; j < k; j++) {
        size_t count = arrival_rounds_part(n, k, j);
        for (size_t i = 0; i < count; i++, at += op->block) {
            int distance = arrival_rounds_distance(k, j, i), next = rounds_next(distance, k);
            char *to =
                next < 0 ? op->to + (size_t)rounds_source(op, distance) * op->block : rounds_slot(op, next, distance);
            memcpy(to, at, op->block);
        }
    }
}

static bool rounds_has(const struct op *op, int k)
{
    return k < 0 || op->in[rounds_source(op, 1 << k)].done;
}

bool arrival_rounds_range(struct op *op, int m, bool whole, struct out *o)
{
    int n = op->slot->n, k = op->crate[m].out_round, j = -1;
    if (whole || !op->aware) {
        for (int i = 0; i < k; i++)
            if (!rounds_has(op, i))
                return false;
        o->sent = 0;
        o->end = op->crate[m].out;
        return true;
    }
    do {
        while (j < k && (o->parts >> (j + 1) & 1u || !rounds_has(op, j)))
            j++;
        if (j >= k)
            return false;
        o->sent = arrival_rounds_before(n, k, j) * op->block;
        for (; j < k && !(o->parts >> (j + 1) & 1u) && rounds_has(op, j); j++)
            o->parts |= 1u << (j + 1);
        o->end = arrival_rounds_before(n, k, j) * op->block;
    } while (o->sent == o->end); /* n is no power of two: a part may have no blocks */
    return true;
}

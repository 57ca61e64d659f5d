/* Alltoall in rounds (paper, section 7): which blocks travel when. The distance of a block is that of its receiver from
 * its sender: modulo n (Bruck), or by exclusive or (recursive doubling, n a power of two). In round k a block moves by
 * 2^k if its distance has bit k. A round's message is made of parts: part j of the blocks that came in round j, bit j
 * being the next lower one of their distance, part -1 of those that begin in this round. */
#ifndef COLL_ARRIVAL_ROUNDS_H
#define COLL_ARRIVAL_ROUNDS_H

#include <stddef.h>

/* Rounds of n members. */
static inline int rounds_number(int n)
{
    int k = 0;
    while (1L << k < n)
        k++;
    return k;
}

/* Bit below `k` that is the highest one of a distance, or -1. */
static inline int rounds_part_of(int distance, int k)
{
    int j = k - 1;
    while (j >= 0 && !(distance >> j & 1))
        j--;
    return j;
}

/* Lowest bit of a distance above `k`, or -1. */
static inline int rounds_next(int distance, int k)
{
    for (int j = k + 1; distance >> j > 0; j++)
        if (distance >> j & 1)
            return j;
    return -1;
}

/* Blocks of part `j` of round `k`. */
size_t arrival_rounds_part(int n, int k, int j);
/* Those of the parts before it; of the whole round: j = k. */
size_t arrival_rounds_before(int n, int k, int j);
/* Place of a distance among the blocks of round `k`. */
size_t arrival_rounds_place(int n, int k, int distance);
/* The distance of block `i` of part `j` of round `k`. */
int arrival_rounds_distance(int k, int j, size_t i);

#endif

#include "exchange.h"

#include "exchange_ball.h"
#include "pair.h"

enum { TURNS = 100, BATCHES = 200 };

struct exchange {
    _Alignas(64) _Atomic(uint32_t) ball;
    _Alignas(64) double best; /* us */
};

static void play(int side, void *arg)
{
    struct exchange *x = arg;
    struct exchange_side mine = {.ball = &x->ball, .side = side};
    double best = exchange_best(&mine, BATCHES, TURNS);
    if (side == 0)
        x->best = best;
}

double perf_exchange(int cpu_a, int cpu_b)
{
    struct exchange x = {.ball = 0};
    return perf_pair((const int[]){cpu_a, cpu_b}, play, &x) ? x.best : 0;
}

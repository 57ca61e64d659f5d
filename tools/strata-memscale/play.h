/* Zero-byte ping-pong of pairs of ranks, over whichever port header was included before (the paper's Figure 6). */
#ifndef MEMSCALE_PLAY_H
#define MEMSCALE_PLAY_H

#include <sched.h>
#include <stdbool.h>

enum { PLAY_TAG = 3, PLAY_WARM = 200, PLAY_BATCHES = 41, PLAY_TURNS = 500 };

/* The k-th of the processors that this process may run on, k from 0; false: there are fewer. */
static bool play_bind(int k)
{
    cpu_set_t may, one;

    if (sched_getaffinity(0, sizeof may, &may) != 0 || k >= CPU_COUNT(&may))
        return false;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &may) && k-- == 0)
            CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

static int play_processors(void)
{
    cpu_set_t may;

    return sched_getaffinity(0, sizeof may, &may) == 0 ? CPU_COUNT(&may) : 1;
}

/* The lower rank of a pair begins. */
static void play_turn(struct port *p, int other)
{
    if (p->rank < other)
        port_send(p, NULL, 0, other, PLAY_TAG);
    port_recv(p, NULL, 0, other, PLAY_TAG);
    if (p->rank > other)
        port_send(p, NULL, 0, other, PLAY_TAG);
}

/* us[0 .. PLAY_BATCHES): mean microseconds one way in each batch. */
static void play(struct port *p, int other, double *us)
{
    for (int i = 0; i < PLAY_WARM; i++)
        play_turn(p, other);
    for (int b = 0; b < PLAY_BATCHES; b++) {
        const uint64_t begin = st_now_ns();
        for (int i = 0; i < PLAY_TURNS; i++)
            play_turn(p, other);
        us[b] = (double)(st_now_ns() - begin) / 1e3 / PLAY_TURNS / 2;
    }
}

#endif

/* --exchange: the first pair of ranks times the bare exchange of a cache line before and after each batch. On a virtual
 * machine its processors may move apart between two batches, and messages then take several times as long. */
#ifndef PERF_LOOPS_EXCHANGE_H
#define PERF_LOOPS_EXCHANGE_H

#include <fcntl.h>
#include "exchange.h"
#include "exchange_ball.h"
#include "loops_support.h"

/* Rank 0's memory, which its partner opens by the number of the process and of its file. */
static void *exchange_memory(struct port *p, int partner)
{
    int32_t file[2] = {getpid(), -1};
    char path[64], seen = 0;
    void *m = MAP_FAILED;
    int fd = -1;
    if (p->rank == 0) {
        fd = memfd_create("strata-perf-exchange", MFD_CLOEXEC);
        if (fd >= 0 && ftruncate(fd, 4096) == 0)
            file[1] = fd;
        port_send(p, file, sizeof file, partner, TAG_MARK);
    } else {
        port_recv(p, file, sizeof file, 0, TAG_MARK);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)file[0], (int)file[1]);
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    if (fd >= 0 && file[1] >= 0)
        m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (m == MAP_FAILED)
        port_fail(p, "--exchange: two ranks cannot share memory; are they on one machine?", 0);
    if (p->rank == 0)
        port_recv(p, &seen, 1, partner, TAG_MARK);
    else
        port_send(p, &seen, 1, 0, TAG_MARK);
    close(fd);
    return m;
}

static void exchange_begin(struct loops *l)
{
    int partner = l->o->test == PERF_MBW && l->p->n > 3 ? l->p->n / 2 : 1;
    if (!l->o->exchange || (l->p->rank != 0 && l->p->rank != partner))
        return;
    if (l->p->n < 2)
        port_fail(l->p, "--exchange needs two ranks", 0);
    l->sides.ball = exchange_memory(l->p, partner);
    l->sides.side = l->p->rank != 0;
    l->exchange = calloc(l->o->batches + 1, sizeof *l->exchange);
    if (!l->exchange)
        port_fail(l->p, "out of memory", 0);
}

/* Reads the exchange before batch b, or after the last. */
static inline void exchange_read(struct loops *l, size_t b)
{
    if (l->exchange)
        l->exchange[b] = exchange_best(&l->sides, EXCHANGE_SERIES);
}

static void exchange_end(struct loops *l)
{
    if (l->exchange)
        munmap(l->sides.ball, 4096);
    free(l->exchange);
}

#endif

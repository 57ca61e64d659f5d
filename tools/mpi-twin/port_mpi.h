/* The measuring loops' view of MPI: see tools/strata-perf/port_strata.h. */
#ifndef PERF_PORT_MPI_H
#define PERF_PORT_MPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include "coll_options.h"

#if defined(OPEN_MPI)
#define PORT_NAME "Open MPI"
#elif defined(MPICH_VERSION)
#define PORT_NAME "MPICH"
#else
#define PORT_NAME "MPI"
#endif

struct port {
    int rank, n;
    double t_init, t_ready;
    long private_after_init;
};
typedef MPI_Request port_req;

static __attribute__((noreturn, cold, noinline)) void port_fail(struct port *p, const char *what, int rc)
{
    (void)rc;
    fprintf(stderr, "%s twin: rank %d: %s\n", PORT_NAME, p->rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* MPI's default error handler ends the job, so return values need no look. */
static inline void port_send(struct port *p, const void *buf, size_t len, int dst, int tag)
{
    (void)p;
    MPI_Send(buf, (int)len, MPI_BYTE, dst, tag, MPI_COMM_WORLD);
}

static inline void port_recv(struct port *p, void *buf, size_t len, int src, int tag)
{
    (void)p;
    MPI_Recv(buf, (int)len, MPI_BYTE, src, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void port_isend(struct port *p, const void *buf, size_t len, int dst, int tag, port_req *req)
{
    (void)p;
    MPI_Isend(buf, (int)len, MPI_BYTE, dst, tag, MPI_COMM_WORLD, req);
}

static inline void port_irecv(struct port *p, void *buf, size_t len, int src, int tag, port_req *req)
{
    (void)p;
    MPI_Irecv(buf, (int)len, MPI_BYTE, src, tag, MPI_COMM_WORLD, req);
}

static inline void port_waitall(struct port *p, size_t n, port_req *reqs)
{
    (void)p;
    MPI_Waitall((int)n, reqs, MPI_STATUSES_IGNORE);
}

static inline void port_sendrecv(struct port *p, const void *sbuf, void *rbuf, size_t len, int dst, int src, int tag)
{
    (void)p;
    MPI_Sendrecv(sbuf, (int)len, MPI_BYTE, dst, tag, rbuf, (int)len, MPI_BYTE, src, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* A collective of blocks of so many bytes; sums are of words of eight bytes where the block has whole ones. */
static inline void port_coll(struct port *p, enum perf_coll_op op, const void *sbuf, void *rbuf, size_t bytes)
{
    int n = (int)bytes;
    (void)p;
    switch (op) {
    case PERF_COLL_ALLTOALL:
        MPI_Alltoall(sbuf, n, MPI_BYTE, rbuf, n, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case PERF_COLL_ALLGATHER:
        MPI_Allgather(sbuf, n, MPI_BYTE, rbuf, n, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case PERF_COLL_ALLREDUCE:
        if (bytes % 8 == 0)
            MPI_Allreduce(sbuf, rbuf, n / 8, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
        else
            MPI_Allreduce(sbuf, rbuf, n, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD);
        break;
    case PERF_COLL_BCAST:
        MPI_Bcast(rbuf, n, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    case PERF_COLL_BARRIER:
    case PERF_COLL_OPS:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    }
}

#endif

/* The measuring loops' view of Strata. The twin has the same functions over MPI (tools/mpi-twin/port_mpi.h); all are
 * inline, so a loop is compiled to direct calls of the library under test. */
#ifndef PERF_PORT_STRATA_H
#define PERF_PORT_STRATA_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strata/coll.h>
#include <strata/strata.h>
#include "coll_options.h"

#define PORT_NAME "Strata"

struct port {
    strata_t *s;
    strata_comm_t *world;
    int rank, n;
    double t_init;           /* when strata_init was called */
    double t_ready;          /* when it returned */
    long private_after_init; /* bytes, where the test asks for it */
};
typedef strata_request_t *port_req;

/* A failed call or a wrong byte: says so and ends the job. */
static __attribute__((noreturn, cold, noinline)) void port_fail(struct port *p, const char *what, int rc)
{
    char text[200];
    snprintf(text, sizeof text, "strata-perf: rank %d: %s%s%s", p->rank, what, rc ? ": " : "",
             rc ? strata_strerror(rc) : "");
    fprintf(stderr, "%s\n", text);
    strata_abort(p->s, 1, text);
    exit(1);
}

static inline void port_ok(struct port *p, const char *what, int rc)
{
    if (__builtin_expect(rc != STRATA_OK, 0))
        port_fail(p, what, rc);
}

static inline void port_send(struct port *p, const void *buf, size_t len, int dst, int tag)
{
    port_ok(p, "strata_send", strata_send(p->world, buf, len, dst, tag));
}

static inline void port_recv(struct port *p, void *buf, size_t len, int src, int tag)
{
    port_ok(p, "strata_recv", strata_recv(p->world, buf, len, src, tag, STRATA_STATUS_IGNORE));
}

static inline void port_isend(struct port *p, const void *buf, size_t len, int dst, int tag, port_req *req)
{
    port_ok(p, "strata_isend", strata_isend(p->world, buf, len, dst, tag, req));
}

static inline void port_irecv(struct port *p, void *buf, size_t len, int src, int tag, port_req *req)
{
    port_ok(p, "strata_irecv", strata_irecv(p->world, buf, len, src, tag, req));
}

static inline void port_waitall(struct port *p, size_t n, port_req *reqs)
{
    port_ok(p, "strata_waitall", strata_waitall(n, reqs, NULL));
}

static inline void port_sendrecv(struct port *p, const void *sbuf, void *rbuf, size_t len, int dst, int src, int tag)
{
    port_ok(p, "strata_sendrecv",
            strata_sendrecv(p->world, sbuf, len, dst, tag, rbuf, len, src, tag, STRATA_STATUS_IGNORE));
}

static inline void port_add_bytes(void *arg, const void *in, void *inout, size_t count)
{
    const unsigned char *a = in;
    unsigned char *b = inout;
    (void)arg;
    for (size_t i = 0; i < count; i++)
        b[i] = (unsigned char)(b[i] + a[i]);
}

static inline void port_add_words(void *arg, const void *in, void *inout, size_t count)
{
    const unsigned long *a = in;
    unsigned long *b = inout;
    (void)arg;
    for (size_t i = 0; i < count; i++)
        b[i] += a[i];
}

/* A collective of blocks of so many bytes; sums are of words of eight bytes where the block has whole ones. */
static inline void port_coll(struct port *p, enum perf_coll_op op, const void *sbuf, void *rbuf, size_t bytes)
{
    static const strata_coll_kind_t kinds[PERF_COLL_OPS] = {[PERF_COLL_ALLTOALL] = STRATA_ALLTOALL,
                                                            [PERF_COLL_ALLGATHER] = STRATA_ALLGATHER,
                                                            [PERF_COLL_ALLREDUCE] = STRATA_ALLREDUCE,
                                                            [PERF_COLL_BCAST] = STRATA_BCAST,
                                                            [PERF_COLL_BARRIER] = STRATA_BARRIER};
    strata_coll_t c = STRATA_COLL_INIT(kinds[op]);
    c.send = sbuf;
    c.recv = rbuf;
    c.element = op == PERF_COLL_ALLREDUCE && bytes % 8 == 0 ? 8 : 1;
    c.count = bytes / c.element;
    c.reduce = c.element == 8 ? port_add_words : port_add_bytes;
    port_ok(p, "strata_coll", strata_coll(p->world, &c));
}

#endif

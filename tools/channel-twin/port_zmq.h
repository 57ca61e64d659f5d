/* ZeroMQ, ways `ipc` and `tcp`: each rank has a PULL socket, and a PUSH socket for each rank that it talks to. */
#ifndef TWIN_PORT_H
#define TWIN_PORT_H

#include <zmq.h>

#include "fork.h"

struct port {
    int rank, n;
    void *context, *in;
    void **out; /* by rank */
};

static inline void port_must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static inline void port_open(struct port *p, const char *way, int n)
{
    struct fork_address *table;
    size_t size = sizeof(table->text);

    p->n = n;
    p->rank = fork_ranks(n, &table);
    p->context = zmq_ctx_new();
    p->in = p->context ? zmq_socket(p->context, ZMQ_PULL) : NULL;
    p->out = calloc((size_t)n, sizeof(*p->out));
    port_must(p->in && p->out, "zmq_socket");
    port_must(zmq_bind(p->in, strcmp(way, "ipc") == 0 ? "ipc://*" : "tcp://127.0.0.1:*") == 0, "zmq_bind");
    port_must(zmq_getsockopt(p->in, ZMQ_LAST_ENDPOINT, table[p->rank].text, &size) == 0, "zmq_getsockopt");
    fork_publish(&table[p->rank]);
    for (int i = p->rank ? 0 : 1; i < (p->rank ? 1 : n); i++) {
        p->out[i] = zmq_socket(p->context, ZMQ_PUSH);
        port_must(p->out[i] && zmq_connect(p->out[i], fork_await(&table[i])) == 0, "zmq_connect");
    }
}

static inline void port_send(struct port *p, int to, const void *data, size_t length)
{
    port_must(zmq_send(p->out[to], data, length, 0) >= 0, "zmq_send");
}

static inline void port_recv(struct port *p, void *data, size_t size)
{
    port_must(zmq_recv(p->in, data, size, 0) >= 0, "zmq_recv");
}

static inline void port_close(struct port *p)
{
    fork_end(p->rank, p->n);
    for (int i = 0; i < p->n; i++)
        if (p->out[i])
            zmq_close(p->out[i]);
    zmq_close(p->in);
    zmq_ctx_term(p->context);
    free(p->out);
}

#endif

/* NNG, ways `ipc` and `tcp`: each rank has a pull socket, and a push socket for each rank that it talks to. Queues as
 * long as ZeroMQ's default. */
#ifndef TWIN_PORT_H
#define TWIN_PORT_H

#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

#include "fork.h"

enum { PORT_QUEUE = 1000 };

struct port {
    int rank, n;
    char folder[64]; /* rank 0's, of ipc */
    nng_socket in;
    nng_socket *out; /* by rank */
};

static inline void port_must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, nng_strerror(rc));
    exit(1);
}

static inline void port_listen(struct port *p, struct fork_address *mine, const char *way)
{
    nng_listener listener;
    int port_number;

    port_must(nng_pull0_open(&p->in), "nng_pull0_open");
    port_must(nng_setopt_int(p->in, NNG_OPT_RECVBUF, PORT_QUEUE), "NNG_OPT_RECVBUF");
    if (strcmp(way, "ipc") == 0) {
        snprintf(mine->text, sizeof(mine->text), "ipc://%s/%d", p->folder, p->rank);
        port_must(nng_listen(p->in, mine->text, &listener, 0), "nng_listen");
    } else {
        port_must(nng_listen(p->in, "tcp://127.0.0.1:0", &listener, 0), "nng_listen");
        port_must(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port_number), "NNG_OPT_TCP_BOUND_PORT");
        snprintf(mine->text, sizeof(mine->text), "tcp://127.0.0.1:%d", port_number);
    }
    fork_publish(mine);
}

static inline void port_open(struct port *p, const char *way, int n)
{
    struct fork_address *table;

    snprintf(p->folder, sizeof(p->folder), "/tmp/channel-twin.XXXXXX");
    if (strcmp(way, "ipc") == 0 && !mkdtemp(p->folder))
        port_must(NNG_ENOENT, "mkdtemp");
    p->n = n;
    p->rank = fork_ranks(n, &table);
    p->out = calloc((size_t)n, sizeof(*p->out));
    port_must(p->out ? 0 : NNG_ENOMEM, "sockets");
    port_listen(p, &table[p->rank], way);
    for (int i = p->rank ? 0 : 1; i < (p->rank ? 1 : n); i++) {
        port_must(nng_push0_open(&p->out[i]), "nng_push0_open");
        port_must(nng_setopt_int(p->out[i], NNG_OPT_SENDBUF, PORT_QUEUE), "NNG_OPT_SENDBUF");
        port_must(nng_dial(p->out[i], fork_await(&table[i]), NULL, 0), "nng_dial");
    }
}

static inline void port_send(struct port *p, int to, const void *data, size_t length)
{
    port_must(nng_send(p->out[to], (void *)(uintptr_t)data, length, 0), "nng_send");
}

static inline void port_recv(struct port *p, void *data, size_t size)
{
    port_must(nng_recv(p->in, data, &size, 0), "nng_recv");
}

static inline void port_close(struct port *p)
{
    fork_end(p->rank, p->n);
    for (int i = 0; i < p->n; i++)
        if (p->out[i].id)
            nng_close(p->out[i]);
    nng_close(p->in);
    if (p->rank == 0)
        (void)rmdir(p->folder);
    free(p->out);
}

#endif

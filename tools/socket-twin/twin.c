/* strata-perf's measurements over one bare TCP connection, with nothing around the system calls: the floor of `compare
 * --cluster`. */
#define _GNU_SOURCE 1
#include <stdint.h>
#include "port_sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <time.h>
#include <unistd.h>
#include "loops.h"

enum { DIAL_TRIES = 3000, DIAL_PAUSE_NS = 10000000 };

/* RANK@ADDRESS:PORT, rank 0's, which listens there. */
static bool parse(const char *text, struct port *p, struct sockaddr_in *at)
{
    char address[64];
    unsigned rank, port;
    if (!text || sscanf(text, "%u@%63[^:]:%u", &rank, address, &port) != 3 || rank > 1 || port > 65535 ||
        inet_pton(AF_INET, address, &at->sin_addr) != 1)
        return false;
    at->sin_family = AF_INET;
    at->sin_port = htons((uint16_t)port);
    p->rank = (int)rank;
    p->n = 2;
    return true;
}

static int accept_one(struct port *p, const struct sockaddr_in *at)
{
    int on = 1, fd, listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(listener, (const struct sockaddr *)at, sizeof *at) != 0 || listen(listener, 1) != 0)
        port_fail(p, "listen", errno);
    fd = accept(listener, NULL, NULL);
    if (fd < 0)
        port_fail(p, "accept", errno);
    (void)close(listener);
    return fd;
}

/* Until the other rank listens. */
static int dial(struct port *p, const struct sockaddr_in *at)
{
    const struct timespec pause = {0, DIAL_PAUSE_NS};
    for (int i = 0; i < DIAL_TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0)
            port_fail(p, "socket", errno);
        if (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0)
            return fd;
        (void)close(fd);
        nanosleep(&pause, NULL);
    }
    port_fail(p, "rank 0 does not listen", errno);
}

static void no_memory_lines(struct loops *l)
{
    (void)l;
}

int main(int argc, char **argv)
{
    struct perf_options o;
    struct port p = {.rank = 0};
    struct sockaddr_in at = {.sin_family = AF_INET};
    int on = 1;
    perf_options_parse(argc, argv, true, &o);
    if (!parse(getenv("STRATA_TWIN"), &p, &at)) {
        fprintf(stderr,
                "sockets twin: STRATA_TWIN is to be RANK@ADDRESS:PORT, with the address at which rank 0 listens\n");
        return 2;
    }
    if (o.test > PERF_MBW || ranks_needed(o.test) > 2) {
        fprintf(stderr, "sockets twin: latency, bw, bibw and mbw only: messages are matched by their order\n");
        return 2;
    }
    p.fd = p.rank == 0 ? accept_one(&p, &at) : dial(&p, &at);
    if (setsockopt(p.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        port_fail(&p, "TCP_NODELAY", errno);
    run_loops(&p, &o, no_memory_lines);
    free(p.out.piece);
    free(p.in.piece);
    (void)close(p.fd);
    return 0;
}

/* What the cases of the connection manager share: both ends are in one process. The functions are in manager.c; each
 * ends the program when what it says does not hold. */
#ifndef TESTS_SOFTHCA_MANAGER_CASES_H
#define TESTS_SOFTHCA_MANAGER_CASES_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "manager: line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                      \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define FAILS(call, error) NEED((errno = 0, (call) == -1 && errno == (error)))

#define WAIT_MS          240000 /* a safety net */
#define NO_SERVICE       8
#define BY_CONSUMER      28
#define SIDR_UNSUPPORTED 1
#define SIDR_REJECTED    2

/* A connection both of whose ends are here. */
struct pair {
    struct rdma_event_channel *active, *passive;
    struct rdma_cm_id *listener, *from, *to;
};

struct rdma_event_channel *channel(void);
struct sockaddr_in at(const char *host, int port);
struct rdma_cm_event *next(struct rdma_event_channel *c, enum rdma_cm_event_type what, int status);
void pass(struct rdma_event_channel *c, enum rdma_cm_event_type what, int status);
bool nothing(struct rdma_event_channel *c);
struct rdma_cm_id *new_in(struct rdma_event_channel *c, enum rdma_port_space space);
struct rdma_cm_id *new_id(struct rdma_event_channel *c);
struct rdma_cm_id *listener_in(struct rdma_event_channel *c, const char *host, enum rdma_port_space space);
struct rdma_cm_id *listener(struct rdma_event_channel *c, const char *host);
struct rdma_cm_id *routed_in(struct rdma_event_channel *c, const char *host, int port, enum rdma_port_space space);
struct rdma_cm_id *routed(struct rdma_event_channel *c, const char *host, int port);
void ask(struct rdma_cm_id *id);
struct pair requested(void);
void end(struct pair *p);

/* ports.c */
void ports(void);
void reused(void);
void options(void);
void datagrams(void);

#endif

/* Fuzzes the connection manager from both sides: commands at random, as a program might write them to its descriptor,
 * and messages at random, as another process of the user might send to its sockets. Nothing may crash or hang, and a
 * connection is made afterwards as if nothing had been. Usage: manager_fuzz SECONDS SEED     with libsofthca preloaded
 * The addresses that commands have for answers are real ones: a wrong one is a program's own crash. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "softhca/fabric.h"

#define COMMANDS 26
#define NEED(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "manager_fuzz: line %d: %s: %s\n", __LINE__, #condition, strerror(errno));                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static char answer[65536]; /* as much as a command can say that there is room for */
static unsigned seed;

static unsigned any(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

static void noise(void *to, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = (unsigned char)any(256);
}

static int manager(void)
{
    int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

    NEED(fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    return fd;
}

/* The address of an answer where each command has it. */
static void answer_to(uint32_t cmd, unsigned char *body)
{
    uint64_t at = (uint64_t)(uintptr_t)answer;
    size_t place = cmd == RDMA_USER_CM_CMD_CREATE_ID ? offsetof(struct rdma_ucm_create_id, response) : 0;

    memcpy(body + place, &at, sizeof at);
}

static void with_address(unsigned char *at)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

    a.sin_port = htons((uint16_t)(any(4) ? 40000 + any(4) : any(65536)));
    memcpy(at, &a, sizeof a);
}

/* Mostly well formed, so that it gets somewhere. */
static size_t command(unsigned char out[1024])
{
    struct rdma_ucm_cmd_hdr h = {.cmd = any(COMMANDS), .out = (uint16_t)(any(4) ? 512 : any(65536))};
    unsigned char *body = out + sizeof h;
    uint32_t id = any(4) ? any(24) : (uint32_t)rand_r(&seed);
    static const size_t places[] = {offsetof(struct rdma_ucm_bind_ip, id),    offsetof(struct rdma_ucm_resolve_ip, id),
                                    offsetof(struct rdma_ucm_connect, id),    offsetof(struct rdma_ucm_accept, id),
                                    offsetof(struct rdma_ucm_destroy_id, id), 0};

    noise(out, 1024);
    h.in = (uint16_t)(any(4) ? 600 : any(1200));
    if (any(8)) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            if (any(2))
                memcpy(body + places[i], &id, sizeof id);
        if (h.cmd == RDMA_USER_CM_CMD_BIND_IP)
            with_address(body + offsetof(struct rdma_ucm_bind_ip, addr));
        if (h.cmd == RDMA_USER_CM_CMD_RESOLVE_IP) {
            memset(body, 0, sizeof(struct sockaddr_in6));
            with_address(body + offsetof(struct rdma_ucm_resolve_ip, dst_addr));
            memcpy(body + offsetof(struct rdma_ucm_resolve_ip, id), &id, sizeof id);
        }
        if (h.cmd == RDMA_USER_CM_CMD_CREATE_ID) {
            uint16_t space = RDMA_PS_TCP;
            memcpy(body + offsetof(struct rdma_ucm_create_id, ps), &space, sizeof space);
        }
    }
    answer_to(h.cmd, body);
    memcpy(out, &h, sizeof h);
    return any(16) ? 1024 : any(1024);
}

/* What somebody says to a port that may be listened at. */
static void caller(void)
{
    unsigned char bytes[1024];
    struct sockaddr_un a;
    socklen_t n;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    NEED(fd >= 0);
    hca_manager_name(RDMA_PS_TCP, 40000 + any(4), "4o7f000001-0", &a, &n);
    noise(bytes, sizeof bytes);
    if (connect(fd, (struct sockaddr *)&a, n) == 0 && any(4)) {
        static const uint32_t magic = 0x6d636873u;
        uint32_t kind = any(8);
        memcpy(bytes, &magic, sizeof magic);
        memcpy(bytes + 4, &kind, sizeof kind);
        (void)!send(fd, bytes, any(2) ? 440 + any(24) : any(1024), MSG_NOSIGNAL);
    }
    close(fd);
}

/* One command that has to succeed. */
static void must(int fd, uint32_t cmd, void *body, size_t size, size_t room)
{
    unsigned char out[1024] = {0};
    struct rdma_ucm_cmd_hdr h = {.cmd = cmd, .in = (uint16_t)size, .out = (uint16_t)room};

    memcpy(out, &h, sizeof h);
    memcpy(out + sizeof h, body, size);
    NEED(write(fd, out, sizeof h + size) == (ssize_t)(sizeof h + size));
}

static uint32_t make_id(int fd)
{
    struct rdma_ucm_create_id_resp said = {0};
    struct rdma_ucm_create_id body = {.uid = 1, .response = (uint64_t)(uintptr_t)&said, .ps = RDMA_PS_TCP};

    must(fd, RDMA_USER_CM_CMD_CREATE_ID, &body, sizeof body, sizeof said);
    return said.id;
}

static struct rdma_ucm_event_resp event(int fd, uint32_t wanted)
{
    struct rdma_ucm_event_resp said = {0};
    struct rdma_ucm_get_event body = {.response = (uint64_t)(uintptr_t)&said};
    struct pollfd p = {.fd = fd, .events = POLLIN};

    NEED(poll(&p, 1, 240000) == 1);
    must(fd, RDMA_USER_CM_CMD_GET_EVENT, &body, sizeof body, sizeof said);
    NEED(said.event == wanted);
    return said;
}

static void connects(void)
{
    int fd = manager();
    struct rdma_ucm_listen listen = {.id = make_id(fd), .backlog = 4};
    struct rdma_ucm_query_route_resp route = {0};
    struct rdma_ucm_query query = {.response = (uint64_t)(uintptr_t)&route, .id = listen.id};
    struct rdma_ucm_resolve_ip resolve = {.id = make_id(fd)};
    struct rdma_ucm_resolve_route to = {.id = resolve.id};
    struct rdma_ucm_connect ask = {.conn_param = {.valid = 1}, .id = resolve.id};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

    must(fd, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof listen, 0);
    must(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &query, sizeof query, sizeof route);
    a.sin_port = route.src_addr.sin6_port;
    memcpy(&resolve.dst_addr, &a, sizeof a);
    must(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof resolve, 0);
    (void)event(fd, 0);
    must(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &to, sizeof to, 0);
    (void)event(fd, 2);
    must(fd, RDMA_USER_CM_CMD_CONNECT, &ask, sizeof ask, 0);
    struct rdma_ucm_accept accept = {.uid = 2, .conn_param = {.valid = 1}, .id = event(fd, 4).id};
    must(fd, RDMA_USER_CM_CMD_ACCEPT, &accept, sizeof accept, 0);
    (void)event(fd, 5);
    close(fd);
}

int main(int argc, char **argv)
{
    int fds[3], commands = 0, accepted = 0, most = argc > 1 ? atoi(argv[1]) : 3;
    time_t end = time(NULL) + most;

    seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 1;
    for (int i = 0; i < 3; i++)
        fds[i] = manager();
    while (time(NULL) < end) {
        unsigned char bytes[1024];
        unsigned which = any(3);
        size_t n = command(bytes);
        commands++;
        accepted += write(fds[which], bytes, n) > 0;
        if (any(8) == 0)
            caller();
        if (any(1000) == 0) {
            close(fds[which]);
            fds[which] = manager();
        }
    }
    NEED(accepted > commands / 100);
    connects();
    printf("passed: %d commands, %d of them carried out, seed %s\n", commands, accepted, argc > 2 ? argv[2] : "1");
    return 0;
}

/* Callers that do not belong to the job, for tests/hostile/strangers_long_test.sh.
 *
 * stranger CONNECTIONS SEED PORT...: up to OPEN of them at a time call processes of btl_tcp on this machine; most wait
 * until they are sent away. Status 0 when each was sent away, having been told no more than a challenge. Prints how
 * many there were of each kind.
 *
 * stranger crowd SEED PORT...: CROWD of them at a time say a greeting and no more, until this process is ended; one
 * that is sent away calls again. Says when STRANGERS of them were challenged at each port. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "components/btl_tcp/wire.h"
#include "support/random.h"

enum { OPEN = 24, CROWD = 300, PORTS = 8, STRANGERS = 64 /* btl_tcp_strangers */, BOUND_S = 300 };

enum kind {
    SCAN,      /* hangs up at once */
    SILENT,    /* says nothing */
    RANDOM,    /* random bytes */
    TRUNCATED, /* a part of a greeting, then the end of the stream */
    LENGTH,    /* a greeting, and a frame of 0xffffffff bytes in place of the proof */
    SLOW,      /* a greeting, one byte a second */
    GREETED,   /* a greeting, and no more */
    REPLAY,    /* all that a member of another job has said: greeting, proof by another key, frames */
    KINDS
};
static const char *const kind_names[KINDS] = {"scan",   "silent", "random",  "truncated",
                                              "length", "slow",   "greeted", "replay"};

struct caller {
    int fd; /* -1: none */
    enum kind kind;
    uint32_t port;      /* place in the list */
    size_t said, heard; /* bytes */
    double next;        /* s: of the next byte of a slow one */
    double until;
    struct {
        struct tcp_hello hello;
        struct tcp_response response;
        struct tcp_head ready;
        struct tcp_frame frame;
        char more[4000];
    } words;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(struct caller *c, size_t n)
{
    ssize_t done = send(c->fd, (const char *)&c->words + c->said, n, MSG_NOSIGNAL | MSG_DONTWAIT);

    c->said += done > 0 ? (size_t)done : 0;
}

static void fill(struct caller *c, struct rnd *rnd)
{
    char *bytes = (char *)&c->words;

    for (size_t i = 0; i < sizeof c->words; i++)
        bytes[i] = (char)rnd_next(rnd);
    if (c->kind == RANDOM)
        return;
    /* Nonce and proof stay random: so are those of another job. */
    c->words.hello.head = (struct tcp_head){TCP_MAGIC, TCP_HELLO, 0};
    c->words.hello.from = rnd_below(rnd, 2);
    c->words.hello.to = 1 - c->words.hello.from;
    c->words.hello.max_send = 64 << 10;
    c->words.hello.epoch = rnd_below(rnd, 3);
    c->words.hello.role = rnd_below(rnd, TCP_ROLES);
    c->words.response.head = (struct tcp_head){TCP_MAGIC, TCP_RESPONSE, (uint16_t)rnd_below(rnd, 2)};
    c->words.ready = (struct tcp_head){TCP_MAGIC, TCP_READY, TCP_ACCEPT};
    c->words.frame = (struct tcp_frame){.len = 0xffffffff, .kind = TCP_DATA};
    if (c->kind == LENGTH)
        memcpy(&c->words.response, &c->words.frame, sizeof c->words.frame);
}

static bool dial(struct caller *c, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return c->fd >= 0 && connect(c->fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static void begin(struct caller *c, struct rnd *rnd)
{
    c->said = c->heard = 0;
    c->until = now_s() + BOUND_S;
    c->next = 0;
    fill(c, rnd);
    switch (c->kind) {
    case RANDOM:
        say(c, 1 + rnd_below(rnd, sizeof c->words));
        break;
    case TRUNCATED:
        say(c, 1 + rnd_below(rnd, sizeof c->words.hello - 1));
        (void)shutdown(c->fd, SHUT_WR);
        break;
    case GREETED:
        say(c, sizeof c->words.hello);
        break;
    case LENGTH:
        say(c, sizeof c->words.hello + sizeof c->words.response);
        break;
    case REPLAY:
        say(c, sizeof c->words.hello + sizeof c->words.response + sizeof c->words.ready + sizeof c->words.frame +
                   rnd_below(rnd, sizeof c->words.more));
        break;
    default:
        break;
    }
}

/* False when it was sent away, or has left. */
static bool go_on(struct caller *c)
{
    char bytes[256];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (n > 0)
        c->heard += (size_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) || c->kind == SCAN)
        return false;
    if (c->kind == SLOW && now_s() >= c->next) {
        say(c, 1);
        c->next = now_s() + 1;
    }
    return true;
}

static int crowd(int argc, char **argv)
{
    static struct caller callers[CROWD];
    unsigned challenged[PORTS] = {0};
    uint32_t n = (uint32_t)argc - 3 < PORTS ? (uint32_t)argc - 3 : PORTS, full = 0;
    struct rnd rnd = {strtoul(argv[2], NULL, 10)};

    for (int i = 0; i < CROWD; i++)
        callers[i] = (struct caller){.fd = -1, .kind = GREETED};
    for (;;) {
        for (int i = 0; i < CROWD; i++) {
            struct caller *c = &callers[i];
            bool was = c->heard > 0, stays = c->fd >= 0 && go_on(c);
            if (c->heard > 0 && !was && ++challenged[c->port] == STRANGERS && ++full == n) {
                printf("crowd of %d\n", CROWD);
                (void)fflush(stdout);
            }
            if (stays)
                continue;
            if (c->fd >= 0)
                (void)close(c->fd);
            c->port = rnd_below(&rnd, n);
            if (!dial(c, (uint16_t)atoi(argv[3 + c->port])) && full < n) {
                perror("a call");
                return 1;
            }
            begin(c, &rnd);
        }
        (void)poll(NULL, 0, 1);
    }
}

int main(int argc, char **argv)
{
    static struct caller callers[OPEN];
    unsigned long wanted = argc > 3 ? strtoul(argv[1], NULL, 10) : 0, begun = 0, ended = 0, of[KINDS] = {0};
    struct rnd rnd = {argc > 3 ? strtoul(argv[2], NULL, 10) : 0};

    if (argc > 3 && strcmp(argv[1], "crowd") == 0)
        return crowd(argc, argv);
    if (wanted == 0)
        return 2;
    for (int i = 0; i < OPEN; i++)
        callers[i].fd = -1;
    while (ended < wanted) {
        for (int i = 0; i < OPEN; i++) {
            struct caller *c = &callers[i];
            if (c->fd < 0 && begun < wanted) {
                c->kind = (enum kind)(begun % KINDS);
                if (!dial(c, (uint16_t)atoi(argv[3 + rnd_below(&rnd, (uint32_t)argc - 3)]))) {
                    fprintf(stderr, "connection %lu: %s\n", begun, strerror(errno));
                    return 1;
                }
                begin(c, &rnd);
                begun++;
            } else if (c->fd >= 0 && !go_on(c)) {
                of[c->kind]++;
                ended++;
                (void)close(c->fd);
                c->fd = -1;
            }
            if (c->fd >= 0 && (c->heard > sizeof(struct tcp_challenge) || now_s() > c->until)) {
                fprintf(stderr, "connection of kind %s: told %zu bytes, not sent away\n", kind_names[c->kind],
                        c->heard);
                return 1;
            }
        }
        (void)poll(NULL, 0, 1);
    }
    for (int k = 0; k < KINDS; k++)
        printf("%s %lu\n", kind_names[k], of[k]);
    return 0;
}

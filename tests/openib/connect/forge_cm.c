/* Asks listeners of librdmacm for connections as nobody of their job would: `forge_cm SECONDS ADDRESS:PORT...`. Random
 * bytes of all lengths, none at all, a part of a word, words with another job's key or of a kind that is no request.
 * librdmacm alone. Prints how many requests were made and how many of them were rejected; status 1 when one was
 * accepted. */
#ifndef HAVE_RDMACM
#include <stdio.h>
int main(void)
{
    puts("SKIP: this build has no librdmacm");
    return 77;
}
#else
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../../components/btl_openib/wire.h"

#define PRIVATE 56 /* bytes that a request has room for */
#define WAIT_MS 3000

static struct rdma_event_channel *channel;
static long made, rejected, accepted;

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(1);
}

/* The next event of the one identifier that there is; -1: none comes. */
static int next_event(void)
{
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *e;
    int type;

    if (poll(&p, 1, WAIT_MS) <= 0 || rdma_get_cm_event(channel, &e) != 0)
        return -1;
    type = (int)e->event;
    (void)rdma_ack_cm_event(e);
    return type;
}

static uint8_t forge(long round, unsigned char bytes[PRIVATE])
{
    struct ib_conn w = {.version = IB_WIRE_VERSION, .type = IB_CONN_REQUEST, .mtu = 3, .rd_atomic = 16};

    for (int i = 0; i < PRIVATE; i++)
        bytes[i] = (unsigned char)rand();
    if (round % 5 == 0)
        return (uint8_t)(rand() % (PRIVATE + 1));
    if (round % 5 == 1)
        return 0;
    w.key = (uint64_t)rand() << 32 | (uint64_t)rand();
    w.from = rand() % 4;
    w.to = rand() % 4;
    w.mine = 1 + (uint32_t)rand() % 100;
    w.qpn[0] = w.qpn[1] = (uint32_t)rand() & 0xffffffu;
    w.credits[0] = w.credits[1] = 1000;
    if (round % 5 == 2)
        w.type = (uint8_t)(IB_CONN_REPLY + rand() % 6);
    memcpy(bytes, &w, IB_CONN_PRIVATE);
    return (uint8_t)(round % 5 == 3 ? (size_t)rand() % IB_CONN_PRIVATE : IB_CONN_PRIVATE);
}

static void ask(struct sockaddr_in *to, long round)
{
    unsigned char bytes[PRIVATE];
    struct rdma_conn_param param = {.private_data = bytes,
                                    .private_data_len = forge(round, bytes),
                                    .responder_resources = 1,
                                    .initiator_depth = 1,
                                    .retry_count = 1,
                                    .rnr_retry_count = 1,
                                    .qp_num = (uint32_t)rand() & 0xffffffu};
    struct rdma_cm_id *id;

    need(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "identifier");
    if (rdma_resolve_addr(id, NULL, (struct sockaddr *)to, WAIT_MS) == 0 &&
        next_event() == RDMA_CM_EVENT_ADDR_RESOLVED && rdma_resolve_route(id, WAIT_MS) == 0 &&
        next_event() == RDMA_CM_EVENT_ROUTE_RESOLVED && rdma_connect(id, &param) == 0) {
        int answer = next_event();
        made++;
        rejected += answer == RDMA_CM_EVENT_REJECTED;
        accepted += answer == RDMA_CM_EVENT_CONNECT_RESPONSE || answer == RDMA_CM_EVENT_ESTABLISHED;
    }
    need(rdma_destroy_id(id) == 0, "destroying an identifier");
}

static struct sockaddr_in parse(char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    char *colon = strchr(text, ':');

    if (colon)
        *colon = 0;
    if (!colon || inet_pton(AF_INET, text, &a.sin_addr) != 1) {
        fprintf(stderr, "not ADDRESS:PORT: %s\n", text);
        exit(2);
    }
    a.sin_port = htons((uint16_t)atoi(colon + 1));
    return a;
}

int main(int argc, char **argv)
{
    enum { MOST = 16 };
    struct sockaddr_in to[MOST];
    time_t end;
    int n = argc - 2;

    if (n < 1 || n > MOST) {
        fprintf(stderr, "usage: forge_cm SECONDS ADDRESS:PORT...\n");
        return 2;
    }
    for (int i = 0; i < n; i++)
        to[i] = parse(argv[2 + i]);
    channel = rdma_create_event_channel();
    need(channel != NULL, "event channel");
    srand(5);
    end = time(NULL) + atoi(argv[1]);
    for (long round = 0; time(NULL) < end; round++)
        ask(&to[round % n], round / n);
    rdma_destroy_event_channel(channel);
    printf("forged %ld requests, %ld rejected, %ld accepted\n", made, rejected, accepted);
    return accepted != 0;
}
#endif

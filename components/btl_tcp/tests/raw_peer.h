/* Rank 1 as a listening socket that a test serves. */
#ifndef RAW_PEER_H
#define RAW_PEER_H

#include <poll.h>
#include "dial.h"
#include "raw_socket.h"

/* Publishes a rank, with a listener that this test serves. */
static inline int raw_listen_as(int rank)
{
    uint16_t port;
    int fd = st_socket_listen(true, &port);

    ck_assert_int_ge(fd, 0);
    rig_card[rank] = rig_card[0];
    rig_card[rank].port = port;
    memset(rig_card[rank].key, 7, TCP_KEY);
    return fd;
}

/* Rank 1. */
static inline int raw_listen(void)
{
    return raw_listen_as(1);
}

/* Callers in the kernel's queue for a listener of rank 1, at an address, until that is full. Returns how many. */
static inline int fill_queue(const uint8_t ip[16], int fds[], int most)
{
    struct sockaddr_storage at;
    socklen_t size = st_socket_address(ip, rig_card[1].port, &at);
    int n = 0;

    for (bool full = false; !full; n++) {
        struct pollfd p = {.events = POLLOUT};
        ck_assert_int_lt(n, most);
        p.fd = fds[n] = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fds[n], (const struct sockaddr *)&at, size);
        full = poll(&p, 1, 100) == 0;
    }
    return n;
}

static inline struct tcp_dial *dial_of(struct st_btl_endpoint *ep)
{
    return ((struct tcp_peer *)ep)->dial;
}

/* Without the dialler's pause. */
static inline void dial_at_once(struct st_btl_endpoint *ep)
{
    if (!dial_of(ep))
        return;
    dial_of(ep)->next_at = 0;
    tcp_of(ep->btl)->dial_at = 0;
}

/* The next call, without the dialler's pause. */
static inline int raw_accept(int listener, struct st_btl_endpoint *ep)
{
    int fd = -1;

    AWAIT((fd = accept(listener, NULL, NULL)) >= 0, dial_at_once(ep); rig_poll());
    return fd;
}

/* Answers a hello with the proof that only the peer can make. */
static inline void raw_challenge(int fd, struct tcp_said *said)
{
    struct tcp_challenge c = {.head = {TCP_MAGIC, TCP_CHALLENGE, 0}, .max_send = 4096};
    struct tcp_hello hello;

    ck_assert(raw_read(fd, &hello, sizeof hello));
    memset(c.nonce, 0x3c, sizeof c.nonce);
    *said = (struct tcp_said){.from = hello.from,
                              .to = hello.to,
                              .dialler_max_send = hello.max_send,
                              .listener_max_send = 4096,
                              .dialler_epoch = hello.epoch,
                              .role = hello.role};
    memcpy(said->dialler, hello.nonce, TCP_NONCE);
    memcpy(said->listener, c.nonce, TCP_NONCE);
    tcp_prove(rig_card[1].key, false, said, c.proof);
    raw_write(fd, &c, sizeof c);
}

/* The handshake of rank 1, or another higher one, up to the READY that it says. */
static inline void raw_meet(int fd)
{
    struct tcp_head ready = {TCP_MAGIC, TCP_READY, TCP_ACCEPT};
    struct tcp_response response;
    struct tcp_said said;

    raw_challenge(fd, &said);
    ck_assert(raw_read(fd, &response, sizeof response));
    raw_write(fd, &ready, sizeof ready);
}

#endif

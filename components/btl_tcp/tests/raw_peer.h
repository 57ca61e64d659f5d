/* Rank 1 as a listening socket that a test serves. */
#ifndef RAW_PEER_H
#define RAW_PEER_H

#include "dial.h"
#include "tcp_rig.h"

/* Publishes rank 1, with a listener that this test serves. */
static inline int raw_listen(void)
{
    uint16_t port;
    int fd = st_socket_listen(true, &port);

    ck_assert_int_ge(fd, 0);
    rig_card[1] = rig_card[0];
    rig_card[1].port = port;
    memset(rig_card[1].key, 7, TCP_KEY);
    return fd;
}

static inline struct tcp_dial *dial_of(struct st_btl_endpoint *ep)
{
    return ((struct tcp_peer *)ep)->dial;
}

/* The next call, without the dialler's pause. */
static inline int raw_accept(int listener, struct st_btl_endpoint *ep)
{
    int fd = -1;

    AWAIT((fd = accept(listener, NULL, NULL)) >= 0, if (dial_of(ep)) dial_of(ep)->next_at = 0; rig_poll());
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

#endif

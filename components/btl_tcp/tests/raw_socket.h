/* A raw socket that dials a module of the rig and speaks its handshake. */
#ifndef RAW_SOCKET_H
#define RAW_SOCKET_H

#include <arpa/inet.h>
#include <strata/sdk/socket.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tcp_rig.h"

static inline int raw_dial(int rank)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(rig_card[rank].port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* `n` bytes, with the modules in progress; false: it was closed. */
static inline bool raw_read(int fd, void *out, size_t n)
{
    size_t have = 0;
    ssize_t got = 0;

    AWAIT(have == n || got<0, rig_poll(); got = st_socket_read(fd, (char *)out + have, n - have); have += got> 0
              ? (size_t)got
              : 0);
    return have == n;
}

/* True when the module has hung up. */
static inline bool raw_is_closed(int fd)
{
    char byte[64];
    ssize_t got = 0;

    for (int i = 0; i < 50 && got >= 0; i++) {
        rig_poll();
        got = st_socket_read(fd, byte, sizeof byte);
    }
    return got < 0;
}

static inline void raw_await_close(int fd)
{
    AWAIT(raw_is_closed(fd), (void)0);
    close(fd);
}

static inline void raw_write(int fd, const void *bytes, size_t n)
{
    ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

/* For a connection of a role, enum tcp_role, and an epoch. */
static inline void raw_hello_of(int fd, int from, int to, uint32_t role, uint32_t epoch, struct tcp_said *said)
{
    struct tcp_hello hello = {.head = {TCP_MAGIC, TCP_HELLO, 0},
                              .from = (uint32_t)from,
                              .to = (uint32_t)to,
                              .max_send = 4096,
                              .epoch = epoch,
                              .role = role};

    memset(hello.nonce, 0x5a, sizeof hello.nonce);
    *said = (struct tcp_said){
        .from = hello.from, .to = hello.to, .dialler_max_send = 4096, .dialler_epoch = epoch, .role = role};
    memcpy(said->dialler, hello.nonce, TCP_NONCE);
    raw_write(fd, &hello, sizeof hello);
}

static inline void raw_hello(int fd, int from, int to, struct tcp_said *said)
{
    raw_hello_of(fd, from, to, TCP_FIRST, 0, said);
}

/* After a hello; false: it was refused before the challenge. */
static inline bool raw_respond(int fd, struct tcp_said *said, uint16_t verdict, const uint8_t key[TCP_KEY])
{
    struct tcp_challenge challenge;
    struct tcp_response r = {.head = {TCP_MAGIC, TCP_RESPONSE, verdict}};

    if (!raw_read(fd, &challenge, sizeof challenge))
        return false;
    said->listener_max_send = challenge.max_send;
    said->listener_epoch = challenge.epoch;
    memcpy(said->listener, challenge.nonce, TCP_NONCE);
    tcp_prove(key, true, said, r.proof);
    raw_write(fd, &r, sizeof r);
    return true;
}

/* Up to the verdict, as rank `from`, which is the higher one; false: it was refused. */
static inline bool raw_prove(int fd, int from, int to, const uint8_t key[TCP_KEY])
{
    struct tcp_said said;
    struct tcp_head head;

    raw_hello(fd, from, to, &said);
    if (!raw_respond(fd, &said, TCP_NONE, key))
        return false;
    return raw_read(fd, &head, sizeof head) && head.kind == TCP_VERDICT && head.verdict == TCP_ACCEPT;
}

/* A connection as rank `from` to module `to`. */
static inline int raw_join(int from, int to)
{
    struct tcp_head ready = {TCP_MAGIC, TCP_READY, TCP_ACCEPT};
    int fd = raw_dial(to);

    ck_assert(raw_prove(fd, from, to, rig_card[to].key));
    raw_write(fd, &ready, sizeof ready);
    return fd;
}

#endif

/* The handshake. The dialler proves that it knows the listener's key, the listener likewise, each for numbers that the
 * other has just made. Of all connections of a pair its lower rank chooses one; the others are told and closed. The
 * choice stands when the higher rank has said READY: a connection that breaks before has carried nothing. */
#define _GNU_SOURCE 1
#include <strata/sdk/hmac.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/clock.h>
#include <strata/sdk/socket.h>
#include <sys/random.h>
#include <sys/socket.h>
#include "bulk.h"
#include "dial.h"
#include "tcp.h"

/* The other end, dialled, closes the connection. */
static void meet_hung_up(struct tcp_module *m, struct tcp_conn *c, const char *why)
{
    if (c->state == TCP_SAID_HELLO && !c->bulk)
        tcp_dial_hung_up(c);
    tcp_conn_lost(m, c, why);
}

/* Reading has found the end of the connection; error: 0 or an errno, by which the kernel tells a silent machine. */
static void meet_ended(struct tcp_module *m, struct tcp_conn *c, int error)
{
    if (error == 0 || error == ECONNRESET) {
        meet_hung_up(m, c, "it has closed the connection");
        return;
    }
    if (c->peer)
        tcp_dial_dark(c->peer);
    tcp_conn_lost(m, c, strerror(error));
}

static bool meet_say(struct tcp_module *m, struct tcp_conn *c, const void *message, size_t n)
{
    /* The socket's buffer is empty: it takes the whole message. */
    if (st_socket_write(c->fd, message, n) == (ssize_t)n)
        return true;
    meet_hung_up(m, c, "the handshake cannot be sent");
    return false;
}

static bool meet_say_verdict(struct tcp_module *m, struct tcp_conn *c, uint16_t kind, uint16_t verdict)
{
    struct tcp_head head = {TCP_MAGIC, kind, verdict};

    return meet_say(m, c, &head, sizeof head);
}

static bool meet_nonce(uint8_t nonce[TCP_NONCE])
{
    return getrandom(nonce, TCP_NONCE, GRND_NONBLOCK) == (ssize_t)TCP_NONCE;
}

static bool meet_lower(const struct tcp_module *m, int rank)
{
    return m->rte->rank < rank;
}

/* ---- the connection of the pair ---- */

static void meet_number(struct tcp_conn *c)
{
    c->epoch = c->said.dialler_epoch > c->said.listener_epoch ? c->said.dialler_epoch : c->said.listener_epoch;
}

/* The pair has a connection that the other end has not left, so there is no place for c. */
static bool meet_is_duplicate(const struct tcp_conn *c)
{
    const struct tcp_conn *old = c->peer->conn;

    return old && !old->broken && old->epoch >= c->epoch;
}

/* c becomes the connection of the pair. The other end has left the one that there is: its loss is news here, since
 * what was sent by it may not have arrived. */
static void meet_take_place(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;
    struct tcp_conn *old = p->conn;
    bool used = old && old->state == TCP_UP;

    if (c->dialled)
        tcp_dial_tried(c);
    else if (p->far)
        tcp_set_keepalive(m, c->fd);
    p->conn = c;
    if (old) {
        old->dialled = false; /* it no longer counts as a try */
        if (used) {
            tcp_receive_rest(m, old);
            tcp_receive_second(m, p);
        }
        tcp_conn_close(m, old);
        tcp_bulk_drop(m, p);
    }
    if (p->epoch < c->epoch)
        p->epoch = c->epoch;
    if (!used)
        return;
    m->count.broken++;
    tcp_peer_lost(p, "the peer has lost the connection");
}

/* By the lower rank. */
static void meet_choose(struct tcp_module *m, struct tcp_conn *c)
{
    meet_take_place(m, c);
    c->state = TCP_CHOSEN;
    c->deadline = tcp_dial_step(m, c->peer, st_now_ns());
}

/* By the higher rank: it has been chosen. */
static void meet_agree(struct tcp_module *m, struct tcp_conn *c)
{
    if (meet_is_duplicate(c)) {
        m->count.duplicates++;
        tcp_conn_close(m, c);
        return;
    }
    if (tcp_conn_is_over(c)) {
        tcp_conn_lost(m, c, "it has given the connection up");
        return;
    }
    if (!meet_say_verdict(m, c, TCP_READY, TCP_ACCEPT))
        return;
    meet_take_place(m, c);
    tcp_conn_up(m, c);
}

/* ---- the dialler ---- */

int tcp_meet_writable(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_hello hello = {.head = {TCP_MAGIC, TCP_HELLO, 0},
                              .from = (uint32_t)m->rte->rank,
                              .to = (uint32_t)c->peer->ep.rank,
                              .max_send = m->btl.max_send,
                              .epoch = c->bulk ? c->peer->conn->epoch : c->peer->epoch,
                              .role = c->bulk ? TCP_BULK : TCP_FIRST};
    int error = 0;
    socklen_t n = sizeof error;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error) {
        if (error == ECONNREFUSED && c->peer->dial)
            c->peer->dial->refused |= (uint8_t)(1u << c->address);
        else if (error == ETIMEDOUT && tcp_dial_is_here(c))
            tcp_dial_silent(c->peer);
        tcp_conn_lost(m, c, strerror(error ? error : errno));
        return 1;
    }
    if (!meet_nonce(hello.nonce)) {
        tcp_conn_lost(m, c, "no random numbers");
        return 1;
    }
    c->said = (struct tcp_said){.from = hello.from,
                                .to = hello.to,
                                .dialler_max_send = hello.max_send,
                                .dialler_epoch = hello.epoch,
                                .role = hello.role};
    memcpy(c->said.dialler, hello.nonce, TCP_NONCE);
    c->state = TCP_SAID_HELLO;
    c->deadline = tcp_dial_step(m, c->peer, st_now_ns()); /* it may compute for long before it looks at its sockets */
    if (!c->bulk)
        c->peer->taken |= (uint8_t)(1u << c->address);
    if (c->peer->far)
        tcp_set_keepalive(m, c->fd);
    m->dial_at = 0; /* which may end the round */
    if (meet_say(m, c, &hello, sizeof hello))
        tcp_conn_watch(m, c);
    return 1;
}

/* The key of who was dialled. */
static bool meet_key(const struct tcp_module *m, const struct tcp_conn *c, uint8_t key[TCP_KEY])
{
    struct tcp_card card;

    if (c->bulk && tcp_card_get(m, c->peer->ep.rank, m->link, &card) != STRATA_OK)
        return false;
    memcpy(key, c->bulk ? card.key : c->peer->dial->card.key, TCP_KEY);
    return true;
}

static void meet_challenge(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;
    struct tcp_response r = {.head = {TCP_MAGIC, TCP_RESPONSE, TCP_NONE}};
    uint8_t key[TCP_KEY];
    uint8_t proof[TCP_PROOF];
    char why[160];

    if (!p->dial && !c->bulk) { /* there is a connection by now */
        tcp_conn_close(m, c);
        return;
    }
    c->said.listener_max_send = c->in.challenge.max_send;
    c->said.listener_epoch = c->in.challenge.epoch;
    meet_number(c);
    memcpy(c->said.listener, c->in.challenge.nonce, TCP_NONCE);
    if (!meet_key(m, c, key)) {
        tcp_conn_lost(m, c, "it is not known any more");
        return;
    }
    tcp_prove(key, false, &c->said, proof);
    if (!st_hmac_same(proof, c->in.challenge.proof, TCP_PROOF)) {
        m->count.refused++;
        tcp_conn_lost(m, c, "a process that is not of this job listens there");
        return;
    }
    tcp_dial_answered(p);
    if (c->said.listener_max_send != m->btl.max_send) {
        snprintf(why, sizeof why, "its btl_tcp_max_send is %u and %u here: give all processes the same",
                 c->said.listener_max_send, m->btl.max_send);
        tcp_conn_close(m, c);
        tcp_peer_gone(p, why);
        return;
    }
    if (c->bulk)
        r.head.verdict = TCP_ACCEPT;
    else if (meet_lower(m, p->ep.rank))
        r.head.verdict = meet_is_duplicate(c) ? TCP_DUPLICATE : TCP_ACCEPT;
    tcp_prove(key, true, &c->said, r.proof);
    if (!meet_say(m, c, &r, sizeof r))
        return;
    c->deadline = tcp_dial_step(m, p, st_now_ns());
    if (c->bulk) {
        c->state = TCP_CHOSEN;
    } else if (r.head.verdict == TCP_ACCEPT) {
        meet_choose(m, c);
    } else if (r.head.verdict == TCP_DUPLICATE) {
        m->count.duplicates++;
        tcp_conn_close(m, c);
    } else {
        c->state = TCP_ANSWERED;
    }
}

static void meet_gone(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;

    tcp_conn_close(m, c);
    tcp_peer_gone(p, "it has lost the connection to this rank, or has left");
}

static void meet_verdict(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;

    switch (c->in.head.verdict) {
    case TCP_ACCEPT:
        meet_agree(m, c);
        return;
    case TCP_DUPLICATE:
        m->count.duplicates++;
        tcp_conn_close(m, c);
        if (p->dial) /* the other one is on its way */
            p->dial->next_at = st_now_ns() + 5 * TCP_DIAL_NEXT;
        return;
    case TCP_GONE:
        meet_gone(m, c);
        return;
    default:
        tcp_conn_lost(m, c, "the handshake is not ours");
    }
}

/* ---- the listener ---- */

static void meet_hello(struct tcp_module *m, struct tcp_conn *c)
{
    const struct tcp_hello *hello = &c->in.hello;
    struct tcp_challenge answer = {.head = {TCP_MAGIC, TCP_CHALLENGE, 0}, .max_send = m->btl.max_send};
    const struct tcp_peer *p;

    if (hello->to != (uint32_t)m->rte->rank || hello->from >= (uint32_t)m->rte->size || hello->from == hello->to ||
        hello->role >= TCP_ROLES || !meet_nonce(answer.nonce)) {
        tcp_conn_lost(m, c, "not for us");
        return;
    }
    /* A stranger learns the number of a rank's connections by it, no more. */
    p = st_rank_table_get(&m->peers, hello->from);
    answer.epoch = p ? p->epoch : 0;
    c->bulk = hello->role == TCP_BULK;
    c->said = (struct tcp_said){.from = hello->from,
                                .to = hello->to,
                                .dialler_max_send = hello->max_send,
                                .listener_max_send = m->btl.max_send,
                                .dialler_epoch = hello->epoch,
                                .listener_epoch = answer.epoch,
                                .role = hello->role};
    memcpy(c->said.dialler, hello->nonce, TCP_NONCE);
    memcpy(c->said.listener, answer.nonce, TCP_NONCE);
    tcp_prove(m->card.key, false, &c->said, answer.proof);
    c->state = TCP_CHALLENGED;
    (void)meet_say(m, c, &answer, sizeof answer);
}

static void meet_response(struct tcp_module *m, struct tcp_conn *c)
{
    uint16_t verdict = c->in.head.verdict;
    uint8_t proof[TCP_PROOF];
    struct tcp_peer *p;

    tcp_prove(m->card.key, true, &c->said, proof);
    if (!st_hmac_same(proof, c->in.response.proof, TCP_PROOF) || tcp_peer_get(m, (int)c->said.from, &p) != STRATA_OK) {
        tcp_conn_lost(m, c, "not of this job");
        return;
    }
    c->peer = p;
    m->n_strangers--;
    meet_number(c);
    if (c->bulk) {
        tcp_bulk_met(m, c);
        return;
    }
    if (p->gone || p->left || c->said.dialler_max_send != m->btl.max_send) {
        (void)meet_say_verdict(m, c, meet_lower(m, p->ep.rank) ? TCP_VERDICT : TCP_READY, TCP_GONE);
        tcp_conn_close(m, c);
    } else if (!meet_lower(m, p->ep.rank)) {
        if (verdict == TCP_ACCEPT)
            meet_agree(m, c);
        else
            tcp_conn_close(m, c);
    } else if (meet_is_duplicate(c)) {
        m->count.duplicates++;
        (void)meet_say_verdict(m, c, TCP_VERDICT, TCP_DUPLICATE);
        tcp_conn_close(m, c);
    } else if (tcp_conn_is_over(c)) {
        tcp_conn_lost(m, c, "it has given the connection up");
    } else if (meet_say_verdict(m, c, TCP_VERDICT, TCP_ACCEPT)) {
        meet_choose(m, c);
    }
}

/* ---- reading ---- */

/* The message that comes next, and its length; 0: none. */
static uint32_t meet_expects(const struct tcp_conn *c, uint16_t *kind)
{
    switch (c->state) {
    case TCP_ACCEPTED:
        *kind = TCP_HELLO;
        return sizeof(struct tcp_hello);
    case TCP_SAID_HELLO:
        *kind = TCP_CHALLENGE;
        return sizeof(struct tcp_challenge);
    case TCP_CHALLENGED:
        *kind = TCP_RESPONSE;
        return sizeof(struct tcp_response);
    case TCP_ANSWERED:
        *kind = TCP_VERDICT;
        return sizeof(struct tcp_head);
    case TCP_CHOSEN:
        *kind = TCP_READY;
        return sizeof(struct tcp_head);
    default:
        return 0;
    }
}

int tcp_meet_readable(struct tcp_module *m, struct tcp_conn *c)
{
    uint16_t kind = 0;
    uint32_t size = meet_expects(c, &kind);
    ssize_t n;

    if (size == 0)
        return 0;
    errno = 0; /* the end of the stream is no error */
    n = st_socket_read(c->fd, c->in.bytes + c->n_in, size - c->n_in);
    if (n < 0) {
        meet_ended(m, c, errno);
        return 1;
    }
    c->n_in += (uint32_t)n;
    /* As early as it can be told. */
    if (c->n_in >= sizeof(struct tcp_head) &&
        (c->in.head.magic != TCP_MAGIC || c->in.head.kind != kind || c->in.head.verdict >= TCP_VERDICTS)) {
        tcp_conn_lost(m, c, "something else than Strata listens there, or another version of it");
        return 1;
    }
    if (c->n_in < size)
        return n > 0;
    c->n_in = 0;
    if (kind == TCP_HELLO)
        meet_hello(m, c);
    else if (kind == TCP_CHALLENGE)
        meet_challenge(m, c);
    else if (kind == TCP_RESPONSE)
        meet_response(m, c);
    else if (kind == TCP_VERDICT)
        meet_verdict(m, c);
    else if (c->bulk)
        tcp_bulk_up(m, c);
    else if (c->in.head.verdict == TCP_GONE)
        meet_gone(m, c);
    else
        tcp_conn_up(m, c);
    return 1;
}

bool tcp_meet_late(struct tcp_module *m, struct tcp_conn *c)
{
    uint8_t state = c->state;
    struct pollfd p = {.fd = c->fd, .events = state == TCP_DIALLED ? POLLOUT : POLLIN};

    if (poll(&p, 1, 0) <= 0)
        return false;
    if (state == TCP_DIALLED)
        (void)tcp_meet_writable(m, c);
    else
        (void)tcp_meet_readable(m, c);
    return c->state != state;
}

/* A peer whose kernel has taken the call may compute: it is called again, and given longer each time. Its kernel
 * answers for its machine (socket.c, silence.c); the limit is for devices between the two that answer in its place. A
 * call within this machine that was not taken waits for room in the peer's queue. */
void tcp_meet_expired(struct tcp_module *m, struct tcp_conn *c)
{
    struct tcp_peer *p = c->peer;

    if (p && (c->state != TCP_DIALLED || tcp_dial_is_here(c)))
        tcp_dial_silent(p);
    if (p && c->bulk && c->state != TCP_DIALLED)
        tcp_bulk_expired(m, c);
    else
        tcp_conn_lost(m, c, "no answer in time");
}

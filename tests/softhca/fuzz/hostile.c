/* The hostile process: a real one of softhca, that answers the victim's wish for a queue pair, sends and receives as it
 * should, and has a thread that scribbles. It may well perish of that itself. */
#include "fuzz.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define QPS 12

struct scribbler {
    char *own, *peer;
    enum form form;
    struct rng r;
};

static void *scribbling(void *arg)
{
    struct scribbler *w = arg;
    /* Between all broken at once, and one thing at a time. */
    static const long pauses[] = {20000, 200000, 2000000};
    const struct timespec pause = {0, pauses[rng_below(&w->r, 3)]};
    const uint32_t burst = rng_below(&w->r, 2) ? 32 : 1u << 20;
    uint32_t own = segment_index(w->own), peer = w->peer ? segment_index(w->peer) : own;

    for (;;) {
        /* Now and then many at once. */
        uint32_t n = rng_below(&w->r, burst) ? 1 : 200;
        for (uint32_t i = 0; i < n; i++) {
            bool at_peer = w->form == FORM_PEER || (w->form == FORM_BOTH && rng_below(&w->r, 2));
            if (at_peer && w->peer)
                scribble(w->peer, own, &w->r);
            else if (!at_peer)
                scribble(w->own, peer, &w->r);
        }
        nanosleep(&pause, NULL);
    }
    return NULL;
}

struct hostile {
    struct side side;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_ah *ah;
    struct ibv_qp *qp[QPS];
    struct end_info to[QPS];
    unsigned next;
};

/* Another queue pair, connected as the victim asks; the oldest one's place is used again. */
static struct end_info serve(struct hostile *h, const struct end_info *ask)
{
    struct end_info mine = {.type = ask->type,
                            .rkey = h->mr->rkey,
                            .lid = h->side.port.lid,
                            .addr = (uintptr_t)h->mr->addr,
                            .bytes = FUZZ_MEMORY,
                            .pid = (uint32_t)getpid()};
    unsigned i = h->next++ % QPS;

    if (h->qp[i])
        (void)ibv_destroy_qp(h->qp[i]);
    h->qp[i] = make_qp(&h->side, (enum ibv_qp_type)ask->type, h->cq, h->cq, NULL);
    if (!h->qp[i])
        return (struct end_info){0};
    h->to[i] = *ask;
    mine.qpn = h->qp[i]->qp_num;
    if (!h->ah) {
        struct ibv_ah_attr a = {.dlid = ask->lid, .port_num = 1};
        h->ah = ibv_create_ah(h->side.pd, &a);
    }
    (void)connect_qp(&h->side, h->qp[i], ask);
    return mine;
}

static void step(struct hostile *h, struct rng *r)
{
    unsigned i = rng_below(r, QPS);
    struct ibv_wc wc[8];

    if (h->qp[i]) {
        for (int k = 0; k < 4; k++)
            post_receive(h->qp[i], NULL, h->mr, NULL, r);
        post_random(h->qp[i], h->mr, &h->to[i], h->ah, NULL, r);
    }
    (void)ibv_poll_cq(h->cq, 8, wc);
}

_Noreturn void hostile_main(int fd, enum form form, uint64_t seed)
{
    struct hostile h = {0};
    struct rng r = rng_from(seed + 1);
    static struct scribbler w;
    struct end_info ask;
    pthread_t t;

    if (!side_open(&h.side))
        _exit(3);
    h.cq = ibv_create_cq(h.side.ctx, 256, NULL, NULL, 0);
    h.mr = ibv_reg_mr(h.side.pd, file_memory(), FUZZ_MEMORY,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC);
    if (!h.cq || !h.mr)
        _exit(3);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const struct timespec pause = {0, 20000};
        if (poll(&p, 1, 0) > 0) {
            ssize_t n = recv(fd, &ask, sizeof ask, 0);
            if (n <= 0)
                _exit(0);
            if (ask.type) {
                struct end_info mine = serve(&h, &ask);
                (void)send(fd, &mine, sizeof mine, MSG_NOSIGNAL);
            } else if (!w.own && form != FORM_CLEAN) { /* the victim is ready */
                w = (struct scribbler){segment_of(getpid()), segment_of((pid_t)ask.pid), form, rng_from(seed)};
                if (!w.own || !w.peer || pthread_create(&t, NULL, scribbling, &w) != 0)
                    _exit(3);
            }
        }
        for (int i = 0; i < 8; i++)
            step(&h, &r);
        nanosleep(&pause, NULL);
    }
}

/* Two and more processes: the adapter works while the peer is busy or asleep, the last byte of a write is seen last,
 * many write into one, memory and fork. IBA 9.5 and 10.8.3.3 (ordering), o9-20 (order of data writes is not promised by
 * IBA; adapters promise the last byte, and MPI libraries rely on it); man ibv_fork_init. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the peer makes no call of libibverbs while it is worked upon ---- */

static void sleeper(int fd, void *arg)
{
    struct device d;
    struct end e;
    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    pattern_fill(e.mem.p + 10000, 5000, 77);
    end_join(&e, fd);
    recv_post(&e, 1, 30000, 1000);
    char c;
    hear(fd, &c, 1); /* asleep in the kernel until all is done */
    pattern_check(e.mem.p, 5000, 5);
    /* Of a receive the bytes may come with the completion. */
    cq_expect(e.recv_cq, 1, IBV_WC_SUCCESS);
    pattern_check(e.mem.p + 30000, 1000, 6);
    uint64_t word;
    memcpy(&word, e.mem.p + 20000, 8);
    REQUIRE_EQ(word, 3);
    end_close(&e);
    device_close(&d);
}

static void target_asleep(void)
{
    struct peer peer = peer_start(sleeper, NULL);
    struct device d;
    struct end e;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    struct end_address to = end_join(&e, peer.fd);
    sleep_ms(20);
    pattern_fill(e.mem.p, 5000, 5);
    struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, 1, 0, 5000, &to, 0);
    op_post(&e, &op);
    cq_expect(e.send_cq, 1, IBV_WC_SUCCESS);
    op = op_rdma(&e, IBV_WR_RDMA_READ, 2, 10000, 5000, &to, 10000);
    op_post(&e, &op);
    cq_expect(e.send_cq, 2, IBV_WC_SUCCESS);
    pattern_check(e.mem.p + 10000, 5000, 77);
    op = op_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 20000, &to, 20000, 3, 0);
    op_post(&e, &op);
    cq_expect(e.send_cq, 3, IBV_WC_SUCCESS);
    pattern_fill(e.mem.p, 1000, 6);
    op = op_make(&e, IBV_WR_SEND, 4, 0, 1000);
    op_post(&e, &op);
    cq_expect(e.send_cq, 4, IBV_WC_SUCCESS);
    tell(peer.fd, "x", 1);
    peer_finish(&peer);
    end_close(&e);
    device_close(&d);
}

/* The other way: the sender posts and sleeps; what it posted goes out all the same, also when the receiver is not ready
 * at first. */
static void posts_and_sleeps(int fd, void *arg)
{
    struct device d;
    struct end e;
    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    end_join(&e, fd);
    pattern_fill(e.mem.p, 20000, 3);
    for (uint64_t i = 0; i < 5; i++) {
        struct op op = op_make(&e, IBV_WR_SEND, i, i * 4000, 4000);
        op_post(&e, &op);
    }
    meet(fd);
    char c;
    hear(fd, &c, 1);
    for (uint64_t i = 0; i < 5; i++)
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
    end_close(&e);
    device_close(&d);
}

static void initiator_asleep(void)
{
    struct peer peer = peer_start(posts_and_sleeps, NULL);
    struct device d;
    struct end e;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    end_join(&e, peer.fd);
    meet(peer.fd);
    sleep_ms(50);
    for (uint64_t i = 0; i < 5; i++)
        recv_post(&e, i, i * 4000, 4000);
    for (uint64_t i = 0; i < 5; i++)
        cq_expect(e.recv_cq, i, IBV_WC_SUCCESS);
    pattern_check(e.mem.p, 20000, 3);
    tell(peer.fd, "x", 1);
    peer_finish(&peer);
    end_close(&e);
    device_close(&d);
}

/* ---- the last byte of a write becomes visible last ---- */

enum { ROUNDS = 60 };
static const size_t last_sizes[] = {2, 64, 1000, 1024, 1025, 8192, 65536};

static void watcher(int fd, void *arg)
{
    struct device d;
    struct end e;
    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    end_join(&e, fd);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        size_t len = last_sizes[i % 7];
        uint8_t want = (uint8_t)(1 + i % 250);
        memset(e.mem.p, 0, len);
        meet(fd);
        double end = now() + time_limit();
        for (long spin = 0; __atomic_load_n(&e.mem.p[len - 1], __ATOMIC_ACQUIRE) != want; spin++)
            if (spin % 100000 == 99999) {
                REQUIRE_MSG(now() < end, "the last byte of write %u never came", i);
                sched_yield();
            }
        for (size_t k = 0; k < len; k++)
            REQUIRE_MSG(e.mem.p[k] == want, "write %u of %zu bytes: byte %zu was not there when the last one was", i,
                        len, k);
    }
    end_close(&e);
    device_close(&d);
}

static void last_byte_last(void)
{
    struct peer peer = peer_start(watcher, NULL);
    struct device d;
    struct end e;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    struct end_address to = end_join(&e, peer.fd);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        size_t len = last_sizes[i % 7];
        memset(e.mem.p, (int)(1 + i % 250), len);
        meet(peer.fd);
        struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, i, 0, len, &to, 0);
        op_post(&e, &op);
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
    }
    peer_finish(&peer);
    end_close(&e);
    device_close(&d);
}

/* ---- several processes send to one shared receive queue and one completion queue ---- */

enum { SENDERS = 2, MESSAGES = 500, PLACES = 64 };

static void sender(int fd, void *arg)
{
    struct device d;
    struct end e;
    uint32_t who = *(uint32_t *)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.send_wr = 16, .min_rnr_timer = 1});
    end_join(&e, fd);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint8_t *at = e.mem.p + i % 16 * 1024;
        if (i >= 16)
            cq_expect(e.send_cq, i - 16, IBV_WC_SUCCESS);
        memcpy(at, &(uint32_t[]){who, i}, 8);
        pattern_fill(at + 8, i % 900, who * 10000 + i);
        struct op op = op_make(&e, IBV_WR_SEND, i, i % 16 * 1024, 8 + i % 900);
        op_post(&e, &op);
    }
    for (uint32_t i = MESSAGES - 16; i < MESSAGES; i++)
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
    meet(fd);
    end_close(&e);
    device_close(&d);
}

static void many_into_one_queue(void)
{
    struct peer peer[SENDERS];
    struct end e[SENDERS];
    struct device d;
    struct memory m;
    uint32_t next[SENDERS] = {0};
    for (uint32_t i = 0; i < SENDERS; i++)
        peer[i] = peer_start(sender, &i);
    device_open(&d);
    memory_make(&m, d.pd, PLACES * 1024, ACCESS_ALL);
    struct ibv_srq_init_attr init = {.attr = {.max_wr = PLACES, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(d.pd, &init);
    struct ibv_cq *cq = ibv_create_cq(d.ctx, PLACES * 2, NULL, NULL, 0);
    REQUIRE(srq && cq);
    for (uint64_t i = 0; i < PLACES; i++)
        srq_post(srq, i, &m, i * 1024, 1024);
    for (int i = 0; i < SENDERS; i++) {
        end_open(&e[i], &d, &(struct end_options){.srq = srq, .recv_cq = cq, .min_rnr_timer = 1});
        end_join(&e[i], peer[i].fd);
    }
    for (int n = 0; n < SENDERS * MESSAGES; n++) {
        struct ibv_wc wc;
        uint32_t head[2];
        cq_next(cq, &wc);
        REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
        memcpy(head, m.p + wc.wr_id * 1024, 8);
        REQUIRE(head[0] < SENDERS && wc.qp_num == e[head[0]].qp->qp_num);
        REQUIRE_EQ(head[1], next[head[0]]);
        REQUIRE_EQ(wc.byte_len, 8 + head[1] % 900);
        pattern_check(m.p + wc.wr_id * 1024 + 8, head[1] % 900, head[0] * 10000 + head[1]);
        next[head[0]]++;
        srq_post(srq, wc.wr_id, &m, wc.wr_id * 1024, 1024);
    }
    cq_expect_none(cq, 20);
    for (int i = 0; i < SENDERS; i++) {
        meet(peer[i].fd);
        peer_finish(&peer[i]);
        end_close(&e[i]);
    }
    REQUIRE_OK(ibv_destroy_srq(srq));
    REQUIRE_OK(ibv_destroy_cq(cq));
    memory_free(&m);
    device_close(&d);
}

/* ---- 64 queue pairs between two processes, all at work ---- */

enum { MANY = 64 };

static void many_ends(int fd, bool first)
{
    static struct end e[MANY];
    struct end_address to[MANY];
    struct device d;
    device_open(&d);
    struct ibv_cq *send_cq = ibv_create_cq(d.ctx, 4 * MANY, NULL, NULL, 0),
                  *recv_cq = ibv_create_cq(d.ctx, 4 * MANY, NULL, NULL, 0);
    REQUIRE(send_cq && recv_cq);
    struct end_options o = {.send_wr = 4, .recv_wr = 4, .memory = 8192, .send_cq = send_cq, .recv_cq = recv_cq};
    for (uint32_t i = 0; i < MANY; i++) {
        end_open(&e[i], &d, &o);
        to[i] = end_join(&e[i], fd);
        recv_post(&e[i], i, 0, 1000);
    }
    meet(fd);
    for (uint32_t i = 0; i < MANY; i++) {
        pattern_fill(e[i].mem.p + 1000, 3000, i + (first ? 0 : 1000));
        struct op op = op_make(&e[i], IBV_WR_SEND, i, 1000, 100 + i);
        struct op w = op_rdma(&e[i], IBV_WR_RDMA_WRITE, i + MANY, 2000, 2000, &to[i], 6000);
        op_post(&e[i], &w);
        op_post(&e[i], &op);
    }
    int received = 0;
    for (int n = 0; n < 3 * MANY; n++) {
        struct ibv_wc wc;
        cq_next(n < 2 * MANY ? send_cq : recv_cq, &wc);
        REQUIRE_MSG(wc.status == IBV_WC_SUCCESS, "%d: %s", (int)wc.wr_id, ibv_wc_status_str(wc.status));
        if (wc.opcode == IBV_WC_RECV) {
            uint8_t want[4000];
            uint32_t i = (uint32_t)wc.wr_id;
            REQUIRE_EQ(wc.byte_len, 100 + i);
            pattern_fill(want, 3000, i + (first ? 1000 : 0));
            REQUIRE(!memcmp(e[i].mem.p, want, 100 + i) && !memcmp(e[i].mem.p + 6000, want + 1000, 2000));
            received++;
        }
    }
    REQUIRE_EQ(received, MANY);
    meet(fd);
    for (int i = 0; i < MANY; i++)
        end_close(&e[i]);
    REQUIRE_OK(ibv_destroy_cq(send_cq));
    REQUIRE_OK(ibv_destroy_cq(recv_cq));
    device_close(&d);
}

static void many_ends_peer(int fd, void *arg)
{
    (void)arg;
    many_ends(fd, false);
}

static void many_queue_pairs(void)
{
    struct peer peer = peer_start(many_ends_peer, NULL);
    many_ends(peer.fd, true);
    peer_finish(&peer);
}

/* ---- processes come and go ---- */

static void datagram_receiver(int fd, void *arg)
{
    struct device d;
    struct end e;
    (void)arg;
    meet(fd); /* it may turn out to be the wrong process */
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.type = IBV_QPT_UD});
    end_join(&e, fd);
    recv_post(&e, 1, 0, 1000);
    meet(fd);
    cq_expect(e.recv_cq, 1, IBV_WC_SUCCESS);
    meet(fd);
    pause(); /* until it is killed */
}

static int nothing(void *arg)
{
    (void)arg;
    return 0;
}

/* Shares our memory: a copy of it, as fork makes, takes long under sanitizers. */
static pid_t use_up_a_pid(void)
{
    static char stack[16384] __attribute__((aligned(16)));
    pid_t pid = clone(nothing, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    REQUIRE(pid > 0);
    return pid;
}

/* A device in user space may give places to processes by their pid. `like` is one that had a place; a process that asks
 * for the same soon after is one whose pid differs from it by a multiple of 1023, as softhca counts. */
static struct peer start_like(pid_t like)
{
    for (int tries = 0;; tries++) {
        struct peer peer = peer_start(datagram_receiver, NULL);
        pid_t last = peer.pid;
        if (!like || (last - like) % 1023 == 0 || tries == 40)
            return peer;
        peer_kill(&peer);
        for (int i = 0; i < 1023 && (last + 1 - like) % 1023 != 0; i++) {
            last = use_up_a_pid();
            REQUIRE_EQ(waitpid(last, NULL, 0), last);
        }
    }
}

/* Who comes after a process that was killed is reached, also in the place that the other had; by the first datagram,
 * unless a link lies between that may lose it. */
static void place_taken_again(void)
{
    struct device d;
    struct end e;
    pid_t first = 0;
    uint64_t copies = getenv("VERBS_PEER_DEVICE") ? 8 : 1;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.type = IBV_QPT_UD});
    for (int i = 0; i < 2; i++) {
        struct peer peer = start_like(first);
        first = peer.pid;
        meet(peer.fd);
        struct end_address mine = end_address(&e), to;
        tell(peer.fd, &mine, sizeof mine);
        hear(peer.fd, &to, sizeof to);
        if (i == 0)
            end_connect(&e, &to);
        meet(peer.fd);
        meet(peer.fd);
        struct ibv_ah *ah = end_ah(&e, &to);
        for (uint64_t k = 0; k < copies; k++) {
            struct op op = op_make(&e, IBV_WR_SEND, k, 0, 100);
            op_to_ud(&op, ah, to.qpn);
            op_post(&e, &op);
            cq_expect(e.send_cq, k, IBV_WC_SUCCESS);
        }
        meet(peer.fd);
        REQUIRE_OK(ibv_destroy_ah(ah));
        peer_kill(&peer);
    }
    end_close(&e);
    device_close(&d);
}

/* ---- two peers break each other's queue pair at the same time ---- */

enum { BREAKS = 300, RESETS = 1000 };

/* For the next round: the same queue pair, or a new one with a number and packets of its own. */
static void begin_again(struct end *e, bool same)
{
    if (same) {
        REQUIRE_OK(end_to_state(e, IBV_QPS_RESET));
        return;
    }
    struct device *d = e->dev;
    end_close(e);
    end_open(e, d, &(struct end_options){0});
}

static void breaker(int fd, void *arg)
{
    struct device d;
    struct end e;
    bool same = *(bool *)arg;
    int rounds = repetitions(same ? RESETS : BREAKS);
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    for (int i = 0; i < rounds; i++) {
        struct end_address to, mine = end_address(&e);
        tell(fd, &mine, sizeof mine);
        hear(fd, &to, sizeof to);
        end_connect(&e, &to);
        for (uint64_t k = 0; k < 4; k++)
            recv_post(&e, k, 0, 1000);
        meet(fd);
        struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, 9, 0, 8, &to, 1 << 20); /* beyond the region */
        op_post(&e, &op);
        struct ibv_wc wc;
        cq_next(e.send_cq, &wc);
        meet(fd);
        begin_again(&e, same);
    }
    end_close(&e);
    device_close(&d);
}

static void broken(bool same)
{
    struct peer peer = peer_start(breaker, &same);
    struct device d;
    struct end e;
    uint32_t rounds = (uint32_t)repetitions(same ? RESETS : BREAKS);
    device_open(&d);
    end_open(&e, &d, &(struct end_options){0});
    for (uint32_t i = 0; i < rounds; i++) {
        struct end_address to, mine = end_address(&e);
        hear(peer.fd, &to, sizeof to);
        tell(peer.fd, &mine, sizeof mine);
        end_connect(&e, &to);
        for (uint64_t k = 0; k < 8; k++)
            recv_post(&e, k, 0, 1000);
        meet(peer.fd);
        for (uint64_t k = 0; k < 20; k++) {
            struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, k, 0, 8, &to, k == i % 4 ? 1 << 20 : 0);
            op_post(&e, &op);
        }
        for (uint64_t k = 0; k < 20; k++) {
            struct ibv_wc wc;
            cq_next(e.send_cq, &wc);
            REQUIRE_EQ(wc.wr_id, k);
        }
        for (uint64_t k = 0; k < 8; k++)
            cq_expect(e.recv_cq, k, IBV_WC_WR_FLUSH_ERR);
        meet(peer.fd);
        begin_again(&e, same);
    }
    peer_finish(&peer);
    end_close(&e);
    device_close(&d);
}

/* Every request that was posted meanwhile ends, once, and receives are flushed. */
static void broken_while_sending(void)
{
    broken(false);
}

/* The same with one queue pair: RESET holds, however much of an error is still being worked on. */
static void reset_at_once(void)
{
    broken(true);
}

/* ---- fork ---- */

/* A child opens the device for itself, while its parent has it open; what it does there is its own. */
static void child_opens_too(void)
{
    struct pair p, c;
    PAIR(&p, .type = IBV_QPT_RC);
    pair_exchange(&p, 1);
    recv_post(&p.a, 5, 0, 100);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        PAIR(&c, .type = IBV_QPT_RC);
        pair_exchange(&c, 2);
        recv_post(&c.a, 6, 0, 100);
        REQUIRE_OK(end_to_state(&c.a, IBV_QPS_ERR));
        cq_expect(c.a.recv_cq, 6, IBV_WC_WR_FLUSH_ERR);
        pair_reconnect(&c);
        pair_exchange(&c, 3);
        pair_close(&c);
        _exit(0);
    }
    int status;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    REQUIRE_EQ(status, 0);
    cq_expect_none(p.a.recv_cq, 20);
    struct op op = op_make(&p.b, IBV_WR_SEND, 7, 0, 100);
    op_post(&p.b, &op);
    cq_expect(p.b.send_cq, 7, IBV_WC_SUCCESS);
    cq_expect(p.a.recv_cq, 5, IBV_WC_SUCCESS);
    pair_close(&p);
}

/* After ibv_fork_init a child may come and go, and change its copy of registered memory; the parent's registration is
 * as before. */
static void fork_keeps_registrations(void)
{
    struct pair p;
    REQUIRE_OK(ibv_fork_init());
    REQUIRE(ibv_is_fork_initialized() != IBV_FORK_DISABLED);
    PAIR(&p, .type = IBV_QPT_RC);
    pair_exchange(&p, 1);
    for (uint32_t i = 0; i < 3; i++) {
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0)
            _exit(0);
        pattern_fill(p.a.mem.p + 4096, 100, i); /* written while the child may share the pages */
        REQUIRE_EQ(waitpid(pid, NULL, 0), pid);
        struct end_address to = end_address(&p.b);
        struct op op = op_rdma(&p.a, IBV_WR_RDMA_WRITE, 1, 4096, 100, &to, 8192);
        op_post(&p.a, &op);
        cq_expect(p.a.send_cq, 1, IBV_WC_SUCCESS);
        pattern_check(p.b.mem.p + 8192, 100, i);
        pair_exchange(&p, 2 + i);
    }
    pair_close(&p);
}

/* man ibv_is_fork_initialized: before ibv_fork_init it is disabled, or not needed. */
static void fork_state(void)
{
    enum ibv_fork_status before = ibv_is_fork_initialized();
    REQUIRE(before == IBV_FORK_DISABLED || before == IBV_FORK_UNNEEDED);
    REQUIRE_OK(ibv_fork_init());
    enum ibv_fork_status after = ibv_is_fork_initialized();
    REQUIRE(after == IBV_FORK_ENABLED || after == IBV_FORK_UNNEEDED);
    REQUIRE_OK(ibv_fork_init());
}

static const struct verbs_case cases[] = {
    CASE(target_asleep),        CASE(initiator_asleep), CASE(last_byte_last),
    CASE(many_into_one_queue),  CASE(many_queue_pairs), CASE(place_taken_again),
    CASE(broken_while_sending), CASE(reset_at_once),    CASE(fork_keeps_registrations),
    CASE(child_opens_too),      CASE(fork_state),
};
VERBS_MAIN("processes", cases)

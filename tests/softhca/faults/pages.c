/* Registered pages that go away, processes killed in the middle of a copy or forked: what only softhca promises. A
 * program of the verbs suite, for softhca alone. */
#define _GNU_SOURCE 1
#include "support/cases.h"
#include "support/ops.h"
#include "support/peer.h"
#include "support/require.h"
#include "control.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- registered pages that go away ---- */

/* What is said on stderr while fn runs. */
static void heard(void (*fn)(struct pair *p, char *at), struct pair *p, char *at, char *text, size_t room)
{
    int saved = dup(2), file = memfd_create("stderr", MFD_CLOEXEC);
    ssize_t n;

    REQUIRE(saved >= 0 && file >= 0 && dup2(file, 2) == 2);
    fn(p, at);
    REQUIRE(dup2(saved, 2) == 2);
    n = pread(file, text, room - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(file);
    close(saved);
}

/* Other pages in their place: an adapter would still have the old ones. */
static void put_others_there(char *at)
{
    REQUIRE(mmap(at, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    memset(at, 0x33, 8192);
}

static struct ibv_mr *stale_mr;

static void send_stale(struct pair *p, char *at)
{
    recv_post(&p->b, 1, 0, 64);
    struct op op = op_make(&p->a, IBV_WR_SEND, 2, 0, 64);
    op.sge[0].addr = (uintptr_t)at;
    op.sge[0].lkey = stale_mr->lkey;
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_LOC_PROT_ERR);
}

static void write_to_stale(struct pair *p, char *at)
{
    struct end_address to = end_address(&p->b);
    to.addr = (uintptr_t)at;
    to.rkey = stale_mr->rkey;
    struct op op = op_rdma(&p->a, IBV_WR_RDMA_WRITE, 2, 0, 64, &to, 0);
    op_post(&p->a, &op);
    cq_expect(p->a.send_cq, 2, IBV_WC_REM_ACCESS_ERR);
}

static void stale(void (*use)(struct pair *p, char *at))
{
    struct pair p;
    struct memory m;
    char said[2000];

    PAIR(&p, .type = IBV_QPT_RC);
    memory_make(&m, p.dev.pd, 8192, ACCESS_ALL);
    stale_mr = m.mr;
    char *at = (char *)m.p;
    put_others_there(at);
    heard(use, &p, at, said, sizeof said);
    REQUIRE_MSG(strstr(said, "registered memory was used after it had been unmapped") != NULL, "it said: %s", said);
    for (int i = 0; i < 64; i++)
        REQUIRE_EQ(at[i], 0x33);
    memory_free(&m);
    pair_close(&p);
}

static void stale_send_is_refused(void)
{
    stale(send_stale);
}
static void stale_target_is_refused(void)
{
    stale(write_to_stale);
}

/* ---- killed in the middle of a copy ---- */

#define LARGE (512u << 10)

static void write_for_ever(int fd, void *arg)
{
    struct device d;
    struct end e;

    (void)arg;
    device_open(&d);
    end_open(&e, &d, &(struct end_options){.memory = LARGE});
    struct end_address to = end_join(&e, fd);
    for (uint64_t i = 0;; i++) {
        struct op op = op_rdma(&e, IBV_WR_RDMA_WRITE, i, 0, LARGE, &to, 0);
        op_post(&e, &op);
        cq_expect(e.send_cq, i, IBV_WC_SUCCESS);
    }
}

/* How often this thread has slept. */
static long sleeps(void)
{
    struct rusage u;

    REQUIRE_OK(getrusage(RUSAGE_THREAD, &u));
    return u.ru_nvcsw;
}

/* A process that is killed while it copies to us never says that it is through. That is known at once from its end,
 * without the sleeps of somebody who waits two seconds for a process that lives. */
static void killed_in_the_middle(void)
{
    for (int i = 0; i < 4; i++) {
        struct peer peer = peer_start(write_for_ever, NULL);
        struct device d;
        struct end e;
        device_open(&d);
        end_open(&e, &d, &(struct end_options){.memory = LARGE});
        end_join(&e, peer.fd);
        sleep_ms(20);
        peer_kill(&peer);
        long before = sleeps();
        REQUIRE_OK(end_to_state(&e, IBV_QPS_ERR));
        REQUIRE_MSG(sleeps() - before < 50, "slept %ld times for a process that has ended", sleeps() - before);
        end_close(&e);
        device_close(&d);
    }
}

static double processor_time(void)
{
    struct timespec t;

    REQUIRE_OK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A child that was forked while somebody was connected to the control socket has that connection, too. When it is over
 * it is over: the thread that serves it sleeps. */
static void forked_while_connected(void)
{
    struct device d;
    pid_t child;
    double begin;
    int fd;

    device_open(&d);
    fd = connect_self();
    command_by(fd, "clear");
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        close(fd); /* that of who has connected; what is left is the device's end */
        pause();
        _exit(0);
    }
    close(fd);
    sleep_ms(50);
    begin = processor_time();
    sleep_ms(1000);
    begin = processor_time() - begin;
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, NULL, 0) == child);
    REQUIRE_MSG(begin < 0.05, "%.3f s of processor time were spent asleep", begin);
    device_close(&d);
}

static const struct verbs_case cases[] = {
    CASE(killed_in_the_middle),
    CASE(forked_while_connected),
    CASE(stale_send_is_refused),
    CASE(stale_target_is_refused),
};
VERBS_MAIN("pages", cases)

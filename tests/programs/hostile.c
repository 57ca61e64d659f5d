/* Ranks in trouble, for tests/hostile: `hostile MODE [ARGS]`. Every mode checks the data that it gets; status 0 means
 * that what had to work worked.
 * - exchange: messages of all sizes both ways between neighbours
 * - die RANK SIGNAL: RANK sends itself SIGNAL in the middle of a long message (-1: all ranks do)
 * - stop RANK SECONDS: RANK is stopped for so long while the others go on
 * - revoke WHEN: from WHEN (init, run) on process_vm_readv and process_vm_writev fail with EPERM
 * - nodump: no rank may look into another (no CAP_SYS_PTRACE, not dumpable)
 * - badrank: a message to a rank that does not exist
 * - short: a receive shorter than the message
 * - unexpected N: N messages that nobody expects, taken in a mix of ways
 * - streams FILE [N]: messages of N (64) MiB and 80 times N short ones, checked, until FILE exists; then how many paths
 * failed
 * - turns FILE: rank 0 talks to each of the others in turn, says "running", and does so again when FILE exists
 * - later FILE: says "running", and exchanges its first messages when FILE exists
 * - long FILE: exchange until FILE exists; says "running" when it begins
 * - exit RANK STATUS: RANK returns STATUS without finalizing
 * - hold: waits for a message that never comes */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "support/counters.h"
#include "support/suite.h"
#include "support/watchdog.h"

static strata_t *s;
static strata_comm_t *world;
static int rank, n;

/* From now on the kernel refuses single copies: as in a container whose policy changes. */
static void refuse_single_copy(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof code[0], .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) {
        fprintf(stderr, "no seccomp here: %s\n", strerror(errno));
        _exit(77);
    }
}

static void forbid_peeking(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    syscall(SYS_capget, &head, data);
    data[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
    data[CAP_TO_INDEX(CAP_SYS_PTRACE)].permitted &= ~CAP_TO_MASK(CAP_SYS_PTRACE);
    syscall(SYS_capset, &head, data);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        _exit(77);
}

/* One round of messages with both neighbours. */
static void exchange(int rounds)
{
    size_t size[80], count = suite_sizes(s, 4u << 20, size, 78);
    size[count++] = 1u << 20;
    size[count++] = (3u << 20) + 7;
    int right = (rank + 1) % n, left = (rank + n - 1) % n;
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < count; i++) {
            strata_request_t *q[2];
            char *in = suite_buffer(size[i]), *out = suite_buffer(size[i]);
            pattern_fill(out, size[i], (uint64_t)rank + i);
            CHECK_OK(strata_irecv(world, in, size[i], left, 5, &q[0]));
            CHECK_OK(strata_isend(world, out, size[i], right, 5, &q[1]));
            CHECK_OK(strata_waitall(2, q, NULL));
            CHECK_EQ(pattern_check(in, size[i], (uint64_t)left + i), -1);
            suite_buffer_free(in, size[i]);
            suite_buffer_free(out, size[i]);
        }
}

static void stamp(const char *what)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    fprintf(stderr, "%s %lld.%09ld\n", what, (long long)t.tv_sec, t.tv_nsec);
    fflush(stderr);
}

static void die(int who, int sig)
{
    size_t len = 64u << 20;
    char *in = malloc(len), *out = calloc(1, len);
    strata_request_t *q[2];
    CHECK(in && out);
    exchange(1);
    for (int round = 0;; round++) {
        CHECK_OK(strata_irecv(world, in, len, (rank + n - 1) % n, 6, &q[0]));
        CHECK_OK(strata_isend(world, out, len, (rank + 1) % n, 6, &q[1]));
        if (round == 1 && (who == rank || who == -1)) {
            suite_spin(s, 20); /* some of it is under way */
            stamp("dying at");
            raise(sig);
        }
        int rc = strata_waitall(2, q, NULL);
        if (rc == STRATA_ERR_PEER) { /* a fine end as well: the launcher ends us */
            for (;;)
                pause();
        }
        CHECK_OK(rc);
    }
}

static void stop(int who, int seconds)
{
    exchange(1);
    if (rank == who) {
        pid_t parent = getpid(), child = fork();
        if (child == 0) {
            sleep((unsigned)seconds);
            kill(parent, SIGCONT);
            _exit(0);
        }
        CHECK(child > 0);
        raise(SIGSTOP);
    }
    exchange(2);
}

static void shorts(int count)
{
    enum { WINDOW = 50 };
    int right = (rank + 1) % n, left = (rank + n - 1) % n, in[WINDOW], out[WINDOW];
    for (int at = 0; at < count; at += WINDOW) {
        strata_request_t *q[2 * WINDOW];
        for (int i = 0; i < WINDOW; i++) {
            out[i] = at + i;
            in[i] = -1;
            CHECK_OK(strata_irecv(world, &in[i], sizeof in[i], left, 8, &q[i]));
            CHECK_OK(strata_isend(world, &out[i], sizeof out[i], right, 8, &q[WINDOW + i]));
        }
        CHECK_OK(strata_waitall(2 * WINDOW, q, NULL));
        for (int i = 0; i < WINDOW; i++)
            CHECK_EQ(in[i], at + i);
    }
}

static void longs(char *in, char *out, size_t len, int round)
{
    strata_request_t *q[2];
    pattern_fill(out, len, (uint64_t)(rank + 100 * round));
    CHECK_OK(strata_irecv(world, in, len, (rank + n - 1) % n, 9, &q[0]));
    CHECK_OK(strata_isend(world, out, len, (rank + 1) % n, 9, &q[1]));
    CHECK_OK(strata_waitall(2, q, NULL));
    CHECK_EQ(pattern_check(in, len, (uint64_t)((rank + n - 1) % n + 100 * round)), -1);
}

/* Rank 0 sees the file and tells the others, so that all do the same. */
static void streams(const char *until, int mib)
{
    size_t len = (size_t)mib << 20;
    char *in = malloc(len), *out = malloc(len);
    int more = 1;
    CHECK(in && out);
    longs(in, out, len, 0);
    fprintf(stderr, "running\n");
    for (int round = 1; more; round++) {
        longs(in, out, len, round);
        shorts(80 * mib);
        more = access(until, F_OK) != 0;
        for (int to = 1; rank == 0 && to < n; to++)
            CHECK_OK(strata_send(world, &more, sizeof more, to, 7));
        if (rank)
            CHECK_OK(strata_recv(world, &more, sizeof more, 0, 7, NULL));
    }
    printf("rank %d: %llu paths failed\n", rank, counted(s, "pml", "ob1", "paths_failed"));
    free(in);
    free(out);
}

static void turns(const char *again)
{
    for (int round = 0; round < 2; round++) {
        for (int to = 1; rank == 0 && to < n; to++) {
            suite_signal(world, to, round);
            suite_await(world, to, round);
        }
        if (rank) {
            suite_await(world, 0, round);
            suite_signal(world, 0, round);
        }
        if (rank || round)
            continue;
        fprintf(stderr, "running\n");
        while (access(again, F_OK) != 0)
            strata_progress(s);
    }
}

static void later(const char *when)
{
    fprintf(stderr, "running\n");
    while (rank == 0 && access(when, F_OK) != 0)
        strata_progress(s);
    for (int to = 1; rank == 0 && to < n; to++)
        suite_signal(world, to, 0);
    if (rank)
        suite_await(world, 0, 0);
    exchange(1);
}

/* Rank 0 sees the file and tells the others, so that all do the same number of rounds. */
static void exchange_until(const char *file)
{
    int more = 1;
    exchange(1);
    fprintf(stderr, "running\n");
    while (more) {
        exchange(1);
        more = access(file, F_OK) != 0;
        for (int to = 1; rank == 0 && to < n; to++)
            CHECK_OK(strata_send(world, &more, sizeof more, to, 7));
        if (rank)
            CHECK_OK(strata_recv(world, &more, sizeof more, 0, 7, NULL));
    }
}

static void unexpected(int count)
{
    struct rnd rnd = {17};
    int done = 0, v;
    strata_status_t st;
    if (rank == 0) {
        for (int i = 0; i < count; i++)
            CHECK_OK(strata_send(world, &i, sizeof i, 1, i / 4));
        suite_await(world, 1, count);
    } else if (rank == 1) {
        suite_spin(s, 1000);
        /* Half by exact tag, blocks backwards; every tag holds four messages that must come in order. */
        uint8_t *next = calloc((size_t)count / 4 + 1, 1);
        CHECK(next);
        while (done < count / 2) {
            int tag = (int)rnd_below(&rnd, (uint32_t)count / 4);
            if (next[tag] == 4)
                continue;
            CHECK_OK(strata_recv(world, &v, sizeof v, done % 2 ? 0 : STRATA_ANY_SOURCE, tag, &st));
            CHECK_EQ(v, tag * 4 + next[tag]);
            next[tag]++;
            done++;
        }
        for (int last = -1; done < count; done++) { /* the rest in order of arrival */
            CHECK_OK(strata_recv(world, &v, sizeof v, STRATA_ANY_SOURCE, STRATA_ANY_TAG, &st));
            CHECK(v > last && st.tag == v / 4);
            CHECK_EQ(v, st.tag * 4 + next[st.tag]);
            next[st.tag]++;
            last = v;
        }
        free(next);
        suite_signal(world, 0, count);
    }
}

static int start(void)
{
    char err[2048] = "";
    strata_config_t config = STRATA_CONFIG_INIT;
    config.error_text = err;
    config.error_text_size = sizeof err;
    int rc = strata_init(&config, &s);
    if (rc != STRATA_OK) {
        fprintf(stderr, "strata_init: %s: %s\n", strata_strerror(rc), err);
        return rc == STRATA_ERR_PARAM ? 2 : 1;
    }
    world = strata_world(s);
    rank = strata_rank(s);
    n = strata_size(s);
    watchdog_name_thread(rank);
    return 0;
}

static void run(int argc, char **argv, const char *mode)
{
    int a = argc > 2 ? atoi(argv[2]) : 0, b = argc > 3 ? atoi(argv[3]) : 0;
    char c[32] = "";
    strata_status_t st;
    if (!strcmp(mode, "die")) {
        die(a, b);
    } else if (!strcmp(mode, "stop")) {
        stop(a, b);
    } else if (!strcmp(mode, "revoke")) {
        exchange(2);
        if (!strcmp(argv[2], "run") && (argc < 4 || rank == b))
            refuse_single_copy();
        exchange(3);
    } else if (!strcmp(mode, "badrank")) {
        int rc = strata_send(world, c, 1, n, 1);
        CHECK_RC(rc, STRATA_ERR_RANK);
        fprintf(stderr, "%s\n", strata_strerror(rc));
    } else if (!strcmp(mode, "short")) {
        CHECK_OK(strata_send(world, c, 32, rank, 1));
        CHECK_RC(strata_recv(world, c, 10, rank, 1, &st), STRATA_ERR_TRUNCATE);
        CHECK(st.length == 10 && st.sent == 32);
    } else if (!strcmp(mode, "unexpected")) {
        unexpected(a);
    } else if (!strcmp(mode, "exit")) {
        exchange(1);
        if (rank == a)
            _exit(b);
        strata_recv(world, c, 1, a, 99, NULL);
    } else if (!strcmp(mode, "streams")) {
        streams(argv[2], argc > 3 ? atoi(argv[3]) : 64);
    } else if (!strcmp(mode, "turns")) {
        turns(argv[2]);
    } else if (!strcmp(mode, "later")) {
        later(argv[2]);
    } else if (!strcmp(mode, "long") && argc > 2) {
        exchange_until(argv[2]);
    } else if (!strcmp(mode, "hold")) {
        exchange(1);
        stamp("holding at");
        strata_recv(world, c, 1, STRATA_ANY_SOURCE, 99, NULL);
    } else {
        exchange(2);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "exchange", *limit = getenv("HOSTILE_TIMEOUT");
    struct watchdog *dog = watchdog_start(test_timeout(limit ? atoi(limit) : 1000), 1);
    if (!strcmp(mode, "revoke") && argc > 2 && !strcmp(argv[2], "init"))
        refuse_single_copy();
    if (!strcmp(mode, "nodump"))
        forbid_peeking();
    int status = start();
    if (status)
        return status;
    run(argc, argv, mode);
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    return 0;
}

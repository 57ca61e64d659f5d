/* Fuzzes a process's control socket: mutated lines of a corpus, whole, in pieces, without end, over many connections.
 * The process has to go on: it answers `clear`, and connections within it work. Usage:
 *   control_fuzz SECONDS CORPUS SEED     with libsofthca preloaded */
#define _GNU_SOURCE 1
#include "fuzz.h"
#include "softhca/fabric.h"
#include "softhca/segment.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINES 200
#define LINE  300

#define ANSWER_MS 120000 /* a safety net: a process that lives answers */

static char corpus[LINES][LINE];
static unsigned n_corpus;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void read_corpus(const char *path)
{
    FILE *f = fopen(path, "re");

    while (f && n_corpus < LINES && fgets(corpus[n_corpus], LINE, f)) {
        corpus[n_corpus][strcspn(corpus[n_corpus], "\n")] = 0;
        n_corpus++;
    }
    if (!f || n_corpus == 0) {
        fprintf(stderr, "%s: %s\n", path, f ? "empty" : strerror(errno));
        exit(2);
    }
    fclose(f);
}

/* ---- the process ---- */

/* Works as long as it is asked to: one byte, one answer. A creation may fail and a message may be lost, as commands
 * have it, so only after `clear` it has to work. */
static int process_main(int fd)
{
    struct side s;
    char c;

    if (!side_open(&s))
        return 1;
    c = 'r';
    if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
        return 1;
    while (recv(fd, &c, 1, 0) == 1) {
        c = works_with_itself(&s) ? 'y' : 'n';
        if (send(fd, &c, 1, MSG_NOSIGNAL) != 1)
            return 1;
    }
    return ibv_dealloc_pd(s.pd) == 0 && ibv_close_device(s.ctx) == 0 ? 0 : 1;
}

/* ---- who speaks to it ---- */

static int connect_to(uint32_t index)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un a;
    socklen_t n;

    hca_socket_name(index, &a, &n);
    if (connect(fd, (struct sockaddr *)&a, n) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A line and its answer; false: none. */
static bool say(int fd, const char *line, char *answer, size_t room)
{
    size_t n = 0;

    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
        return false;
    while (n + 1 < room) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, ANSWER_MS) <= 0 || recv(fd, answer + n, 1, 0) != 1)
            return false;
        if (answer[n++] == '\n')
            break;
    }
    answer[n] = 0;
    return true;
}

/* The process under test has to keep its device: that it may be told to lose it is the one command left out. */
static bool is_forbidden(const char *text, size_t n)
{
    return memmem(text, n, "gone", 4) && memmem(text, n, "soft0", 5);
}

static size_t mutate(char *text, struct rng *r)
{
    size_t n;

    snprintf(text, LINE, "%s", corpus[rng_below(r, n_corpus)]);
    n = strlen(text);
    for (uint32_t k = rng_below(r, 4); k > 0; k--) {
        size_t at = n ? rng_below(r, (uint32_t)n) : 0;
        const char *other = corpus[rng_below(r, n_corpus)];
        switch (rng_below(r, 5)) {
        case 0: /* any byte, zero and line ends too */
            text[at] = (char)rng_next(r);
            n += n == 0;
            break;
        case 1: /* without a piece */
            memmove(text + at, text + n - (n - at) / 2, (n - at) / 2);
            n = at + (n - at) / 2;
            break;
        case 2: /* the end of another */
            snprintf(text + at, LINE - at, "%s", other + strlen(other) / 2);
            n = at + strlen(text + at);
            break;
        case 3: /* digits */
            n = at + (size_t)snprintf(text + at, LINE - at, "%lld", (long long)rng_next(r));
            break;
        default: /* twice */
            if (n * 2 < LINE) {
                memcpy(text + n, text, n);
                n *= 2;
            }
        }
        n = n < LINE - 1 ? n : LINE - 1;
    }
    return n;
}

/* A connection: some lines, some of them in pieces, and an end in good or bad manner. */
static void talk(uint32_t index, struct rng *r)
{
    int fd = connect_to(index);
    char text[LINE + 1], heard[4096];
    bool open_line = false; /* the next text goes on with it */

    for (uint32_t k = rng_below(r, 12); fd >= 0 && k > 0; k--) {
        size_t n = mutate(text, r), first;
        if (is_forbidden(text, n) || (open_line && memmem(text, n, "gone", 4)))
            continue;
        open_line = rng_below(r, 8) == 0;
        if (!open_line)
            text[n++] = '\n';
        first = rng_below(r, 4) ? n : rng_below(r, (uint32_t)n + 1);
        if (send(fd, text, first, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
            send(fd, text + first, n - first, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            break; /* it has enough of us */
        if (rng_below(r, 2))
            (void)!recv(fd, heard, sizeof heard, MSG_DONTWAIT);
    }
    if (fd >= 0 && rng_below(r, 4) == 0) {
        const struct linger hard = {1, 0};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    if (fd >= 0)
        close(fd);
}

/* Whether it still is what it was, all commands taken back. */
static bool is_healthy(uint32_t index, int pair)
{
    static const char *const commands[] = {"clear\n", "address soft0 1 0\n", "port soft0 1 up\n"};
    char answer[300] = "nothing", c = '?';
    struct pollfd p = {.fd = pair, .events = POLLIN};
    int fd = connect_to(index);
    bool ok = fd >= 0;

    for (size_t i = 0; ok && i < sizeof commands / sizeof *commands; i++)
        ok = say(fd, commands[i], answer, sizeof answer) && strcmp(answer, "ok\n") == 0;
    if (!ok)
        fprintf(stderr, "the control socket does not answer ok: %s\n", answer);
    if (fd >= 0)
        close(fd);
    ok = ok && send(pair, &c, 1, MSG_NOSIGNAL) == 1 && poll(&p, 1, ANSWER_MS) > 0 && recv(pair, &c, 1, 0) == 1 &&
         c == 'y';
    if (!ok)
        fprintf(stderr, "the process does not work any more: %c\n", c);
    return ok;
}

/* The index of the child that has just joined: the only one of this fabric that is its. */
static uint32_t index_of(pid_t pid)
{
    for (uint32_t index = 1; index < HCA_PROCESSES; index++) {
        int fd = connect_to(index);
        struct ucred who;
        socklen_t n = sizeof who;
        if (fd < 0)
            continue;
        bool it = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.pid == pid;
        close(fd);
        if (it)
            return index;
    }
    return 0;
}

static bool run(double seconds, struct rng *r, unsigned *n)
{
    double end = now() + seconds;
    bool healthy = true;
    int pair[2], status;
    uint32_t index;
    pid_t pid;
    char c;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
        return false;
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(pair[0]);
        exit(process_main(pair[1]));
    }
    close(pair[1]);
    index = recv(pair[0], &c, 1, 0) == 1 ? index_of(pid) : 0;
    if (index == 0) {
        fprintf(stderr, "there is no process\n");
        return false;
    }
    while (healthy && now() < end) {
        for (int i = 0; i < 50; i++, ++*n)
            talk(index, r);
        /* What was said over the other connections may still be read, after our `clear`: what is broken stays so. */
        healthy = is_healthy(index, pair[0]);
        for (int i = 0; i < 5 && !healthy; i++) {
            usleep(50000);
            healthy = is_healthy(index, pair[0]);
        }
    }
    close(pair[0]);
    if (!healthy)
        kill(pid, SIGABRT);
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "the process ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return false;
    }
    return healthy;
}

int main(int argc, char **argv)
{
    struct rng r;
    unsigned n = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: control_fuzz SECONDS CORPUS SEED\n");
        return 2;
    }
    read_corpus(argv[2]);
    r = rng_from(strtoull(argv[3], NULL, 0));
    if (!run(strtod(argv[1], NULL), &r, &n)) {
        printf("FAILED: seed %s, after %u connections\n", argv[3], n);
        return 1;
    }
    printf("seed %s: %u connections\n", argv[3], n);
    return 0;
}

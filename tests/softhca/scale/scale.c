/* Starts many processes that are all connected with all, and says how long that takes and how much memory.
 *
 *     scale PROCESSES QUEUE_PAIRS exchange   a message over each queue pair, both ways, and they end
 *     scale PROCESSES QUEUE_PAIRS kill N     N of them are killed in the middle of traffic; the others notice and end
 *     scale PROCESSES QUEUE_PAIRS stay       traffic until all are killed by somebody else
 *
 * QUEUE_PAIRS with each peer. Status 1: a process failed, or, with `exchange`, an idle queue pair takes more than it
 * may. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "scale.h"

#define MOST_BYTES 512 /* of shared state for an idle queue pair: issue 4 */

static struct board *make_board(uint32_t n, uint32_t per_peer)
{
    size_t bytes = sizeof(struct board) + (size_t)n * n * per_peer * sizeof(uint32_t);
    struct board *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (b == MAP_FAILED)
        return NULL;
    b->processes = n;
    b->per_peer = per_peer;
    return b;
}

static void start(struct board *b, pid_t *pids, int traffic)
{
    pid_t parent = getpid();

    for (uint32_t i = 0; i < b->processes; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(1);
            scale_process(b, i, traffic);
            exit(0);
        }
        if (pids[i] < 0) {
            perror("fork");
            atomic_store(&b->failed, 1);
            return;
        }
    }
}

/* Takes the status of those that have ended; false when none is left. */
static bool reap(struct board *b, pid_t *pids)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < b->processes; i++) {
            bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && atomic_load(&b->victim[i]);
            if (pids[i] != pid)
                continue;
            pids[i] = 0;
            if (status == 0 || was_killed)
                break;
            fprintf(stderr, "process %u ended with status %#x\n", i, (unsigned)status);
            atomic_store(&b->failed, 1);
        }
    }
    return pid == 0;
}

static double seconds(const struct board *b, enum step from, enum step to)
{
    return (double)(atomic_load(&b->when_us[to]) - atomic_load(&b->when_us[from])) * 1e-6;
}

/* False: too much. */
static bool print(const struct board *b)
{
    uint32_t ends = (b->processes - 1) * b->per_peer;
    uint64_t most = 0, tables = 0, private = 0, shared = 0, asked = 0, descriptors = 0;

    for (uint32_t i = 0; i < b->processes; i++) {
        const struct report *r = &b->report[i];
        uint64_t each = (r->shared - r->asked_for + ends - 1) / ends;
        most = each > most ? each : most;
        descriptors = r->descriptors > descriptors ? r->descriptors : descriptors;
        shared += r->shared;
        asked += r->asked_for;
        tables += r->page_table_kib;
        private += r->private_kib;
    }
    printf("%u processes, %u queue pairs with each peer: %u queue pairs\n", b->processes, b->per_peer,
           b->processes * ends);
    printf("made in %.2f s, connected in %.2f s, a message over each in %.2f s\n", seconds(b, OPENED, MADE),
           seconds(b, MADE, CONNECTED), seconds(b, CONNECTED, EXCHANGED));
    printf("shared state of an idle queue pair: %llu bytes beside the queues that were asked for (%u may be)\n",
           (unsigned long long)most, MOST_BYTES);
    printf(
        "in all: %llu MiB shared, %llu of it queues; %llu MiB private; %llu MiB page tables; %llu descriptors each\n",
        (unsigned long long)(shared >> 20), (unsigned long long)(asked >> 20), (unsigned long long)(private >> 10),
        (unsigned long long)(tables >> 10), (unsigned long long)descriptors);
    fflush(stdout);
    return most <= MOST_BYTES && shared > asked;
}

/* Every process's sends have completed so many times. */
static bool busy(const struct board *b)
{
    for (uint32_t i = 0; i < b->processes; i++)
        if (atomic_load(&b->report[i].sends) < 3ull * b->per_peer * (b->processes - 1))
            return false;
    return true;
}

static void kill_some(struct board *b, const pid_t *pids, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        atomic_store(&b->victim[(k + 1) * b->processes / (n + 1)], 1);
    atomic_store(&b->victims, n);
    for (uint32_t i = 0; i < b->processes; i++)
        if (atomic_load(&b->victim[i]) && pids[i] > 0)
            kill(pids[i], SIGKILL);
    printf("%u killed\n", n);
    fflush(stdout);
}

/* Once, when every queue pair has carried a message. */
static void print_when_ready(const struct board *b, bool traffic, bool *printed, bool *fits)
{
    if (*printed || atomic_load(&b->arrived[EXCHANGED]) < b->processes)
        return;
    *printed = true;
    *fits = print(b) || traffic; /* of few queue pairs the pages that are begun count too much */
}

static bool run(struct board *b, pid_t *pids, const char *mode, uint32_t n_kill)
{
    bool printed = false, acted = false, fits = true, traffic = strcmp(mode, "exchange") != 0;

    atomic_store(&b->stays, strcmp(mode, "stay") == 0);
    start(b, pids, traffic);
    while (reap(b, pids)) {
        print_when_ready(b, traffic, &printed, &fits);
        if (traffic && !acted && busy(b)) {
            acted = true;
            if (!atomic_load(&b->stays))
                kill_some(b, pids, n_kill);
            else
                puts("traffic");
            fflush(stdout);
        }
        pause_us(1000);
    }
    print_when_ready(b, traffic, &printed, &fits); /* all may have ended since we looked */
    if (atomic_load(&b->failed) || !printed || (traffic && !acted))
        return false;
    if (traffic)
        printf("%u others noticed, went on among themselves, and ended\n", b->processes - n_kill);
    return fits;
}

int main(int argc, char **argv)
{
    uint32_t n = argc > 3 ? (uint32_t)atoi(argv[1]) : 0, per_peer = argc > 3 ? (uint32_t)atoi(argv[2]) : 0;
    const char *mode = argc > 3 ? argv[3] : "";
    uint32_t n_kill = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
    bool kills = strcmp(mode, "kill") == 0, known = kills || strcmp(mode, "stay") == 0 || strcmp(mode, "exchange") == 0;
    struct board *b;
    pid_t *pids;
    bool fine;

    if (!known || n < 2 || n > MAX_PROCESSES || per_peer < 1 || per_peer > 10000 ||
        (kills && (!n_kill || n_kill >= n))) {
        fprintf(stderr, "usage: %s PROCESSES QUEUE_PAIRS exchange|stay|kill [N]\n", argv[0]);
        return 2;
    }
    b = make_board(n, per_peer);
    pids = calloc(n, sizeof *pids);
    fine = b && pids && run(b, pids, mode, n_kill);
    free(pids);
    return fine ? 0 : 1;
}

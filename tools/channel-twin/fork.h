/* Ranks of libraries that have no launcher: processes of one fork, which tell each other their addresses in shared
 * memory. */
#ifndef TWIN_FORK_H
#define TWIN_FORK_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

struct fork_address {
    atomic_int known;
    char text[128];
};

/* Starts ranks 1 to n-1 and returns one's own rank; *table: the address of each. */
static inline int fork_ranks(int n, struct fork_address **table)
{
    size_t size = (size_t)n * sizeof(**table);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    *table = memory;
    fflush(NULL);
    for (int i = 1; i < n; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            exit(1);
        }
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            return i;
        }
    }
    return 0;
}

static inline void fork_publish(struct fork_address *a)
{
    atomic_store(&a->known, 1);
}

static inline const char *fork_await(struct fork_address *a)
{
    struct timespec nap = {0, 1000000};

    while (!atomic_load(&a->known))
        nanosleep(&nap, NULL);
    return a->text;
}

/* Rank 0 waits for the others. */
static inline void fork_end(int rank, int n)
{
    int status;

    for (int i = 1; rank == 0 && i < n; i++)
        if (wait(&status) < 0 || status != 0)
            exit(1);
}

#endif

/* What the tests of launchers start: joins the job, then does what its arguments say.
 *   launch_probe fence          "rank R of N on HOST" after a fence, ends well
 *   launch_probe exit R STATUS  rank R exits with STATUS before finalize, the others wait in a fence
 *   launch_probe return R STATUS  the same by a return from main; R -1: all ranks
 *   launch_probe kill R SIGNAL  rank R kills itself, the others wait in a fence
 *   launch_probe abort R STATUS rank R calls strata_abort, the others wait in a fence
 *   launch_probe survive R 9    rank R kills itself, the others wait for a message of it and are told (--keep-going)
 *   launch_probe heap           prints the bytes that its heap holds after the start
 *   launch_probe late           ends well while the launcher is stopped, which goes on when this rank has ended
 *   launch_probe twice          two contexts at once, then one more after both are gone */
#include <dlfcn.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <strata/strata.h>

static int twice(strata_t *first)
{
    strata_t *second = NULL;
    int bad = strata_init(NULL, &second) != STRATA_OK;
    if (bad)
        return 1;
    bad |= strata_rank(second) != strata_rank(first) || strata_size(second) != strata_size(first);
    bad |= strata_fence(first) != STRATA_OK;
    bad |= strata_fence(second) != STRATA_OK;
    bad |= strata_finalize(second) != STRATA_OK;
    bad |= strata_finalize(first) != STRATA_OK;
    if (bad || strata_init(NULL, &first) != STRATA_OK)
        return 1;
    bad |= strata_fence(first) != STRATA_OK;
    bad |= strata_finalize(first) != STRATA_OK;
    return bad;
}

/* PMIx_Finalize waits for the server's answer two seconds, no longer. */
static int late(strata_t *s)
{
    void *pmix = dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD), *symbol = pmix ? dlsym(pmix, "PMIx_Finalize") : NULL;
    const pid_t launcher = getppid(), self = getpid();
    int (*pmix_finalize)(const void *, size_t);

    if (!symbol || strata_fence(s) != STRATA_OK)
        return 96;
    memcpy(&pmix_finalize, &symbol, sizeof symbol);
    if (strata_rank(s) == 0 && fork() == 0) {
        while (getppid() == self)
            usleep(10000);
        usleep(1500000); /* the other ranks have ended as well */
        kill(launcher, SIGCONT);
        _exit(0);
    }
    if (strata_rank(s) == 0)
        kill(launcher, SIGSTOP);
    else
        usleep(500000);
    (void)pmix_finalize(NULL, 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "fence";
    int who = argc > 2 ? atoi(argv[2]) : -1, number = argc > 3 ? atoi(argv[3]) : 0;
    strata_t *s = NULL;
    if (strata_init(NULL, &s) != STRATA_OK)
        return 99;
    if (strcmp(what, "twice") == 0)
        return twice(s);
    if (strcmp(what, "late") == 0)
        return late(s);
    if (strcmp(what, "heap") == 0)
        printf("heap %zu\n", mallinfo2().uordblks);
    if (strcmp(what, "return") == 0 && (who == -1 || strata_rank(s) == who))
        return number;
    if (strata_rank(s) == who) {
        if (strcmp(what, "exit") == 0)
            _exit(number);
        if (strcmp(what, "kill") == 0 || strcmp(what, "survive") == 0)
            kill(getpid(), number);
        if (strcmp(what, "abort") == 0)
            strata_abort(s, number, "the test wants it");
    }
    if (strcmp(what, "survive") == 0) {
        char byte;
        int told = strata_recv(strata_world(s), &byte, 1, who, 0, STRATA_STATUS_IGNORE);
        printf("rank %d: %s\n", strata_rank(s), strata_strerror(told));
        (void)strata_finalize(s); /* may say that not everybody took part; must return */
        return told == STRATA_ERR_PEER ? 0 : 97;
    }
    int rc = strata_fence(s);
    printf("rank %d of %d\n", strata_rank(s), strata_size(s));
    return strata_finalize(s) == STRATA_OK && rc == STRATA_OK ? 0 : 98;
}

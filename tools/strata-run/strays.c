/* A descriptor holds a process while its environment is read, since its number may be used again. */
#define _GNU_SOURCE
#include "strays.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "job.h"

enum { LOOKS = 100 }; /* at most, with pauses of 5 ms */

/* Whether the environment of a process begins a variable like that. */
static bool has_variable(pid_t pid, const char *begin)
{
    char path[64], *text = NULL;
    size_t room = 0, n = strlen(begin);
    bool has = false;
    snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
    FILE *f = fopen(path, "re");
    while (f && !has && getdelim(&text, &room, 0, f) >= 0)
        has = strncmp(text, begin, n) == 0;
    free(text);
    if (f)
        fclose(f);
    return has;
}

static bool kill_if_stray(pid_t pid, pid_t session, const char *begin)
{
    if (pid <= 0 || pid == getpid() || getsid(pid) != session)
        return false;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool stray = fd >= 0 && has_variable(pid, begin) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
    if (fd >= 0)
        close(fd);
    return stray;
}

/* Whether there were any. */
static bool kill_all(pid_t session, const char *begin)
{
    DIR *d = opendir("/proc");
    bool any = false;
    for (struct dirent *e; d && (e = readdir(d));)
        any |= kill_if_stray((pid_t)strtol(e->d_name, NULL, 10), session, begin);
    if (d)
        closedir(d);
    return any;
}

void strays_kill(pid_t launcher, pid_t session)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    char begin[64];
    snprintf(begin, sizeof(begin), "PMIX_NAMESPACE=" JOB_NAME_BEGIN, (long)launcher);
    for (int i = 0; i < LOOKS && kill_all(session, begin); i++)
        nanosleep(&pause, NULL);
}

/* Files of plots, and gnuplot. */
#include "config.h"
#include "plots.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

FILE *plot_open(const char *folder, const char *name, const char *end)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    FILE *f = fopen(path, "we");
    if (!f)
        fprintf(stderr, "strata-miba: %s: cannot be written: %s\n", path, strerror(errno));
    return f;
}

bool plot_close(FILE *f, const char *name)
{
    const bool failed = ferror(f) != 0, unflushed = fclose(f) != 0;

    if (failed || unflushed)
        fprintf(stderr, "strata-miba: %s of the report cannot be written: %s\n", name, strerror(errno));
    return !failed && !unflushed;
}

/* In the folder, with its messages thrown away. */
bool plot_draw(const char *folder, const char *name)
{
    char script[128];
    snprintf(script, sizeof script, "%s.gp", name);
    char *const argv[] = {(char *)"gnuplot", script, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int how = 0;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
    const int error = posix_spawnp(&child, "gnuplot", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        return false;
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

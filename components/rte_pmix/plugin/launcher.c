#define _GNU_SOURCE
#include "plugin/launcher.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

bool rte_pmix_launched(void)
{
    const char *nspace = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
    if (!nspace || !*nspace || !rank || !*rank)
        return false;
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            return true;
    return false;
}

/* A number of the environment, or -1. */
static long launcher_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    long n = strtol(text, &end, 10);
    return *end == '\0' && n <= INT_MAX ? n : -1;
}

static bool launcher_same(const char *a, const char *b)
{
    const char *x = getenv(a), *y = getenv(b);
    return x && y && *x && strcmp(x, y) == 0;
}

static bool launcher_private(const char *folder)
{
    struct stat st;
    return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

bool rte_pmix_one_machine(struct rte_pmix_job *job)
{
    long size = launcher_number("OMPI_COMM_WORLD_SIZE"), rank = launcher_number("PMIX_RANK");
    const char *name = getenv("PMIX_NAMESPACE"), *folder = getenv("PMIX_SERVER_TMPDIR");
    /* mpirun's own names for job and rank: a launcher inside its job sets PMIx's and leaves these as they are. */
    if (!launcher_same("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid") ||
        !launcher_same("PMIX_RANK", "OMPI_COMM_WORLD_RANK") ||
        !launcher_same("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"))
        return false;
    if (size < 1 || rank < 0 || rank >= size || strspn(name, "0123456789") != strlen(name) || !folder ||
        !launcher_private(folder))
        return false;
    *job = (struct rte_pmix_job){.name = name, .folder = folder, .rank = (int)rank, .size = (int)size};
    return true;
}

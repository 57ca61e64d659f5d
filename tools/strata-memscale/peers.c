/* Where the programs are that measure other libraries: built from rank.c by each MPI's compiler (tools/mpi-twin). */
#define _GNU_SOURCE 1
#include "memscale.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const programs[N_LIBRARIES] = {NULL, "strata-memscale-rank.openmpi", "strata-memscale-rank.mpich"};

static bool on_path(const char *name)
{
    char list[4096], file[4400], *rest = list;
    const char *path = getenv("PATH");

    snprintf(list, sizeof list, "%s", path ? path : "/usr/bin:/bin");
    for (const char *dir; (dir = strsep(&rest, ":")) != NULL;) {
        snprintf(file, sizeof file, "%s/%s", dir, name);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* Beside this program in a build tree, where libtool keeps it in .libs; else where it was installed. */
bool peer_rank_program(enum library l, char *path, size_t size, char *why, size_t why_size)
{
    char self[PATH_MAX] = "";
    const char *const places[] = {"", "/..", ST_LIBEXECDIR};

    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        *strrchr(self, '/') = '\0';
    if (!on_path(launcher_names[l])) {
        snprintf(why, why_size, "no %s", launcher_names[l]);
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if ((size_t)snprintf(path, size, "%s%s/%s", i < 2 ? self : "", places[i], programs[l]) < size &&
            access(path, X_OK) == 0)
            return true;
    }
    snprintf(why, why_size, "no %s: it is built where the MPI's compiler is found", programs[l]);
    return false;
}

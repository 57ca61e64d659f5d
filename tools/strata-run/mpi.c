#include "mpi.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "report.h"

static const char plugin[] = "mca_pml_strata.so";

/* Where its folder may be from this program's: in the build tree, which has programs in .libs, and where it was
 * installed. */
static const char *const places[] = {"/../embed/openmpi-5.0/.libs", "/embed/openmpi-5.0/.libs",
                                     "/../lib/strata/openmpi-5.0"};

static bool mpi_has_plugin(const char *folder)
{
    char path[2 * PATH_MAX];
    return snprintf(path, sizeof(path), "%s/%s", folder, plugin) < (int)sizeof(path) && access(path, R_OK) == 0;
}

static bool mpi_find(char *out, size_t size)
{
    const char *given = getenv("STRATA_EMBED_DIR");
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (given && *given) {
        snprintf(out, size, "%s", given);
        return mpi_has_plugin(out);
    }
    self[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(out, size, "%s%s", self, places[i]);
        if (mpi_has_plugin(out))
            return true;
    }
    snprintf(out, size, "%s/openmpi-5.0", ST_PLUGIN_DIR);
    return mpi_has_plugin(out);
}

int mpi_enable(struct environment *env)
{
    static const char path_name[] = "OMPI_MCA_mca_base_component_path", pml_name[] = "OMPI_MCA_pml";
    const char *others = environment_get(env, path_name); /* of the caller, or by -x */
    char folder[PATH_MAX + 64], text[3 * PATH_MAX];
    if (!mpi_find(folder, sizeof(folder))) {
        report_error("--mpi: no %s in %s: it is built where configure is told of an Open MPI 5.0, "
                     "--with-openmpi=PREFIX; STRATA_EMBED_DIR may name its folder",
                     plugin, folder);
        return -1;
    }
    snprintf(text, sizeof(text), "%s:%s", folder, others && *others ? others : "SYSTEM_DEFAULT");
    environment_set(env, path_name, sizeof(path_name) - 1, text);
    if (!environment_get(env, pml_name))
        environment_set(env, pml_name, sizeof(pml_name) - 1, "strata");
    return 0;
}

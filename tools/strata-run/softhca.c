#include "softhca.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

static const char library[] = "libsofthca.so";

/* Where it may be from this program's folder: in the build tree, which has programs in .libs, and where it was
 * installed. */
static const char *const places[] = {"/../softhca/.libs/", "/softhca/.libs/", "/../lib/"};

static int find(char *out, size_t size)
{
    const char *given = getenv("STRATA_SOFTHCA");
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (given && *given) {
        snprintf(out, size, "%s", given);
        return access(out, R_OK);
    }
    self[n < 0 ? 0 : n] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(out, size, "%s%s%s", self, places[i], library);
        if (access(out, R_OK) == 0)
            return 0;
    }
    snprintf(out, size, "%s/%s", ST_LIBDIR, library);
    return access(out, R_OK);
}

static void set(struct environment *env, const char *name, const char *value)
{
    environment_set(env, name, strlen(name), value);
}

int softhca_enable(struct environment *env)
{
    char path[2 * PATH_MAX], text[3 * PATH_MAX];
    const char *others = environment_get(env, "LD_PRELOAD"); /* of the caller, or by -x */
    if (find(path, sizeof(path)) != 0) {
        report_error(
            "--softhca: no %s: it is built where libibverbs-dev is installed; STRATA_SOFTHCA may say where it is",
            path);
        return -1;
    }
    if (strpbrk(path, " :")) { /* the dynamic loader would take it for several */
        report_error("--softhca: LD_PRELOAD takes no path with a space or a colon: %s", path);
        return -1;
    }
    snprintf(text, sizeof(text), "%s%s%s", path, others && *others ? ":" : "", others ? others : "");
    set(env, "LD_PRELOAD", text);
    if (!environment_get(env, "SOFTHCA_FABRIC")) {
        snprintf(text, sizeof(text), "job-%d", (int)getpid());
        set(env, "SOFTHCA_FABRIC", text);
    }
    return 0;
}

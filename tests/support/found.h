/* The BTL components that this build has, as strata-info finds them, and that this machine can run: so a new one is
 * tested without being named. */
#ifndef TEST_SUPPORT_FOUND_H
#define TEST_SUPPORT_FOUND_H

#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/world.h"

/* One that needs a device says so where there is none. Asked in a process of its own: what a device leaves behind in a
 * process, threads for example, is not for the tests. */
static inline bool found_usable(const char *name)
{
    char settings[80], err[600] = "";
    strata_t *s = NULL;
    int status = 0;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        snprintf(settings, sizeof settings, "btl=%s,self", name);
        struct tw_world *w = tw_create(&(struct tw_options){.n = 1, .settings = settings, .quiet = true});
        int rc = tw_init(w, 0, &s, err, sizeof err);
        if (rc == STRATA_ERR_UNSUPPORTED)
            fprintf(stderr, "not tested: %s\n", err);
        _exit(rc == STRATA_ERR_UNSUPPORTED);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status == 0;
}

static inline void found_btls(void (*each)(const char *name))
{
    char command[600];
    const char *build = getenv("STRATA_BUILD");
    snprintf(command, sizeof command, "env -u LD_PRELOAD %s/strata-info --components --json", build ? build : ".");
    FILE *f = popen(command, "r");
    CHECK(f);
    json_error_t err;
    json_t *j = json_loadf(f, 0, &err), *list = json_object_get(j, "components");
    CHECK_MSG(json_is_array(list), "strata-info --components --json: %s", err.text);
    CHECK_EQ(pclose(f), 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *c = json_array_get(list, i);
        const char *fw = json_string_value(json_object_get(c, "framework"));
        const char *name = json_string_value(json_object_get(c, "name"));
        if (fw && name && !strcmp(fw, "btl") && found_usable(name))
            each(name);
    }
    json_decref(j);
}

#endif

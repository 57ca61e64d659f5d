/* The BTL components that this build has, as strata-info finds them: so a new one is tested without being named. */
#ifndef TEST_SUPPORT_FOUND_H
#define TEST_SUPPORT_FOUND_H

#include <jansson.h>
#include "support/world.h"

static inline void found_btls(void (*each)(const char *name))
{
    char command[600];
    const char *build = getenv("STRATA_BUILD");
    snprintf(command, sizeof command, "%s/strata-info --components --json", build ? build : ".");
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
        if (fw && name && !strcmp(fw, "btl"))
            each(name);
    }
    json_decref(j);
}

#endif

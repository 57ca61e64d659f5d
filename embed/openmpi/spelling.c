/* Parameters that do not exist. Open MPI ignores them; here they are an error with the nearest name, wherever they come
 * from: --mca, which mpirun passes on in the environment, the environment itself, Open MPI's parameter files. */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char variable[] = "OMPI_MCA_pml_strata_", parameter[] = "pml_strata_";

/* True, and says so in `text`, when `name` is none of ours. */
static bool unknown(const char *name, size_t length, const char *where, char *text, size_t size)
{
    char copy[128];
    const char *near;

    snprintf(copy, sizeof copy, "%.*s", (int)length, name);
    if (pml_strata_vars_known(copy))
        return false;
    near = pml_strata_vars_nearest(copy);
    snprintf(text, size, "there is no parameter pml_strata_%s%s%s%s%s%s; strata-mpirun --params lists them", copy,
             near ? " (did you mean pml_strata_" : "", near ? near : "", near ? "?)" : "", where ? ", set in " : "",
             where ? where : "");
    return true;
}

static bool unknown_in_environment(char *text, size_t size)
{
    extern char **environ;

    for (char **e = environ; *e; e++) {
        const char *name = *e + sizeof variable - 1;
        if (strncmp(*e, variable, sizeof variable - 1) == 0 && unknown(name, strcspn(name, "="), NULL, text, size))
            return true;
    }
    return false;
}

/* Lines "name = value"; # begins a comment. */
static bool unknown_in_file(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "re");
    char *line = NULL, where[300];
    size_t room = 0;
    bool found = false;

    for (unsigned n = 1; f && !found && getline(&line, &room, f) >= 0; n++) {
        const char *name = line + strspn(line, " \t");
        if (strncmp(name, parameter, sizeof parameter - 1) != 0)
            continue;
        name += sizeof parameter - 1;
        snprintf(where, sizeof where, "%s, line %u", path, n);
        found = unknown(name, strcspn(name, " \t\r\n=#"), where, text, size);
    }
    free(line);
    if (f)
        fclose(f);
    return found;
}

/* Those that Open MPI has read: mca_base_param_files, a list with commas. */
static bool unknown_in_files(char *text, size_t size)
{
    const mca_base_var_storage_t *value = NULL;
    int index = mca_base_var_find("opal", "mca", "base", "param_files");
    char *list, *rest = NULL;
    bool found = false;

    if (index < 0 || mca_base_var_get_value(index, &value, NULL, NULL) != OPAL_SUCCESS || !value || !value->stringval)
        return false;
    list = strdup(value->stringval);
    for (char *path = list ? strtok_r(list, ",", &rest) : NULL; path && !found; path = strtok_r(NULL, ",", &rest))
        found = unknown_in_file(path, text, size);
    free(list);
    return found;
}

bool pml_strata_misspelt(char *text, size_t size)
{
    return unknown_in_environment(text, size) || unknown_in_files(text, size);
}

/* Strata's parameters under Open MPI's names: parameter X is pml_strata_X to mpirun, ompi_info and MPI_T. */
#include "pml_strata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strata/sdk/info.h>

#define PREFIX "OMPI_MCA_pml_strata_"

struct var {
    char *name;
    char *value; /* Open MPI's storage: it allocates what it writes here */
    char *first; /* what it was registered with */
    int index;
    struct var *next;
};
static struct {
    struct var *first, **last;
    strata_setting_t *settings;
    size_t n;
} vars = {NULL, NULL, NULL, 0};

static mca_base_var_info_lvl_t level_of(int level)
{
    static const mca_base_var_info_lvl_t levels[] = {OPAL_INFO_LVL_1, OPAL_INFO_LVL_2, OPAL_INFO_LVL_3,
                                                     OPAL_INFO_LVL_4, OPAL_INFO_LVL_5, OPAL_INFO_LVL_6,
                                                     OPAL_INFO_LVL_7, OPAL_INFO_LVL_8, OPAL_INFO_LVL_9};
    return levels[level < 1 ? 0 : level > 9 ? 8 : level - 1];
}

static void add(void *arg, const strata_param_t *p)
{
    struct var *v = calloc(1, sizeof *v);

    (void)arg;
    if (!v)
        return;
    v->name = strdup(p->name);
    v->first = strdup(p->value ? p->value : "");
    v->value = v->first;
    v->index = v->name && v->first
                   ? mca_base_component_var_register(&mca_pml_strata_component.pmlm_version, v->name, p->help,
                                                     MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, level_of(p->level),
                                                     MCA_BASE_VAR_SCOPE_READONLY, &v->value)
                   : -1;
    pml_strata_pvars_transport(p->name);
    *vars.last = v;
    vars.last = &v->next;
    vars.n++;
}

int pml_strata_vars_register(void)
{
    if (vars.first)
        return OMPI_SUCCESS;
    vars.last = &vars.first;
    return strata_params(NULL, add, NULL) == STRATA_OK ? OMPI_SUCCESS : OMPI_ERROR;
}

const strata_setting_t *pml_strata_vars_settings(size_t *n)
{
    free(vars.settings);
    vars.settings = calloc(vars.n + 1, sizeof *vars.settings);
    *n = 0;
    for (struct var *v = vars.first; v && vars.settings; v = v->next) {
        mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
        if (v->index < 0 || mca_base_var_get_value(v->index, NULL, &source, NULL) != OPAL_SUCCESS ||
            source == MCA_BASE_VAR_SOURCE_DEFAULT || !v->value)
            continue;
        vars.settings[(*n)++] = (strata_setting_t){.name = v->name, .value = v->value};
    }
    return vars.settings;
}

static bool known(const char *name, size_t length)
{
    for (const struct var *v = vars.first; v; v = v->next)
        if (strlen(v->name) == length && strncmp(v->name, name, length) == 0)
            return true;
    return length == 8 && strncmp(name, "priority", 8) == 0;
}

static const char *nearest(const char *name)
{
    const char **names = calloc(vars.n + 1, sizeof *names);
    const char *found;
    size_t n = 0;

    for (const struct var *v = vars.first; v && names; v = v->next)
        names[n++] = v->name;
    found = names ? st_info_nearest(name, names, n) : NULL;
    free((void *)names);
    return found;
}

bool pml_strata_vars_unknown(char *text, size_t size)
{
    extern char **environ;

    for (char **e = environ; *e; e++) {
        char name[128];
        const char *at = *e + sizeof PREFIX - 1, *near;
        size_t length;
        if (strncmp(*e, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        length = strcspn(at, "=");
        if (known(at, length))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        near = nearest(name);
        snprintf(text, size,
                 "there is no parameter pml_strata_%s%s%s%s; ompi_info --param pml strata --level 9 lists them", name,
                 near ? " (did you mean pml_strata_" : "", near ? near : "", near ? "?)" : "");
        return true;
    }
    return false;
}

void pml_strata_vars_fini(void)
{
    free(vars.settings);
    vars.settings = NULL;
}

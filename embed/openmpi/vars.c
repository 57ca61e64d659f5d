/* Strata's parameters under Open MPI's names: parameter X is pml_strata_X to mpirun, ompi_info and MPI_T. */
#include "pml_strata.h"

#include <stdlib.h>
#include <string.h>

enum { JOB_LEVEL = 3 }; /* MPI_T_VERBOSITY_USER_ALL: what lies above is for who tunes or develops */

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

static void add(void *arg, const struct st_info_param *p)
{
    const int *most = arg;
    struct var *v = p->level > *most || pml_strata_vars_known(p->name) ? NULL : calloc(1, sizeof *v);

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
    *vars.last = v;
    vars.last = &v->next;
    vars.n++;
}

static bool add_all(int (*create)(const strata_config_t *, struct st_mca **, char *, size_t), int most)
{
    static const strata_setting_t fixed[] = {{"rte", "host"}};
    const strata_config_t config = {.size = sizeof config, .settings = fixed, .n_settings = 1};
    struct st_mca *mca = NULL;
    char why[512];

    /* Where rte host cannot be used, strata_init says why. */
    if (create(&config, &mca, why, sizeof why) != STRATA_OK && create(NULL, &mca, why, sizeof why) != STRATA_OK) {
        opal_output(0, "pml strata: not used: %s", why); /* Open MPI itself says only that it cannot be opened */
        return false;
    }
    st_info_params(mca, add, &most);
    st_info_counters(mca, pml_strata_pvars_add, NULL);
    st_info_destroy(mca);
    return true;
}

static void forget(void)
{
    for (struct var *v = vars.first, *next; v; v = next) {
        next = v->next;
        free(v->name);
        free(v->first);
        free(v);
    }
    vars.first = NULL;
    vars.n = 0;
}

/* Whether Open MPI still has what was registered: it forgets variables when it closes the framework, by MPI_T_finalize
 * before MPI_Init or by the end of a session. The plugin stays loaded all the same. */
static bool registered(void)
{
    return vars.first && vars.first->name && mca_base_var_find("ompi", "pml", "strata", vars.first->name) >= 0;
}

/* A variable costs half a kilobyte and more in each rank. A tool, which does not call MPI_Init, sees all parameters; a
 * job those up to level JOB_LEVEL of the components that it loads at its start, and all when a setting may mean another
 * one. */
int pml_strata_vars_register(void)
{
    bool job = ompi_mpi_state >= OMPI_MPI_STATE_INIT_STARTED;
    char text[512];

    if (registered())
        return OMPI_SUCCESS;
    forget();
    vars.last = &vars.first;
    if (!(job ? add_all(st_info_create_needed, JOB_LEVEL) : add_all(st_info_create, 9)))
        return OMPI_ERROR;
    if (job && pml_strata_misspelt(text, sizeof text) && !add_all(st_info_create, 9))
        return OMPI_ERROR;
    return OMPI_SUCCESS;
}

const strata_setting_t *pml_strata_vars_settings(size_t *n)
{
    free(vars.settings);
    vars.settings = calloc(vars.n + 1, sizeof *vars.settings);
    *n = 0;
    for (struct var *v = vars.first; v && vars.settings; v = v->next) {
        mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
        if (v->index < 0 || mca_base_var_get_value(v->index, NULL, &source, NULL) != OPAL_SUCCESS ||
            source == MCA_BASE_VAR_SOURCE_DEFAULT)
            continue;
        /* NULL is Open MPI's empty string, which takes back what Strata's own files say. */
        vars.settings[(*n)++] = (strata_setting_t){.name = v->name, .value = v->value ? v->value : ""};
    }
    return vars.settings;
}

bool pml_strata_vars_known(const char *name)
{
    for (const struct var *v = vars.first; v; v = v->next)
        if (strcmp(v->name, name) == 0)
            return true;
    return strcmp(name, "priority") == 0;
}

const char *pml_strata_vars_nearest(const char *name)
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

void pml_strata_vars_fini(void)
{
    free(vars.settings);
    vars.settings = NULL;
}

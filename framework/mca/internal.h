/* What the files of framework/mca share with each other and with their unit tests; nobody else includes it. */
#ifndef ST_MCA_INTERNAL_H
#define ST_MCA_INTERNAL_H

#include <pthread.h>
#include <strata/sdk/info.h>
#include "framework/base/base_params.h"
#include "framework/base/context.h"
#include "framework/mca/mca.h"

/* ---- text (suggest.c) -------------------------------------------------------------------------------------- */

/* Writes one line for the user into err (unless NULL or of size 0) and returns rc, so that a detector is one
 * statement. */
int st_mca_fail(int rc, char *err, size_t err_size, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The cost of making one name of the other: 4 for each letter added, left out or replaced, 3 for two neighbours that
 * change places. */
size_t st_edit_cost(const char *a, const char *b);

/* The closest of a series of names offered one by one; `best` stays NULL while nothing is close. */
struct st_suggest {
    const char *wanted;
    const char *best;
    size_t cost;
};
void st_suggest_offer(struct st_suggest *sg, const char *name);
/* "; did you mean "x"?" or "" into buf, which is returned. */
const char *st_suggest_text(const struct st_suggest *sg, char *buf, size_t size);

/* ---- typed values (param_parse.c) -------------------------------------------------------------------------- */

union st_value {
    bool b;
    int64_t i;
    size_t z;
    double d;
    const char *s; /* the text given to st_param_parse itself */
    int e;
};

/* Parses text as row demands, range included. STRATA_ERR_PARAM: `why` says what is wrong and what is allowed. */
int st_param_parse(const struct st_param *row, const char *text, union st_value *out, char *why, size_t why_size);
/* Stores a parsed value at row->offset of config. */
void st_param_store(const struct st_param *row, const union st_value *value, void *config);
/* "0 .. 65536 bytes", "one of spin, yield", ... what a value may be. */
const char *st_param_allowed(const struct st_param *row, char *buf, size_t size);
const char *st_param_type_name(enum st_param_type type);
/* Bytes of the field that a value of this type is stored in. */
size_t st_param_type_size(enum st_param_type type);
/* Whether a row is complete: name, help, level, choices, a default that parses, an offset inside config_size. */
int st_param_check_row(const struct st_param *row, size_t config_size, char *why, size_t why_size);

/* ---- settings from all sources (param_sources.c, param_file.c) ------------------------------------------------ */

struct st_setting {
    char *name, *value;
    char *where; /* "environment STRATA_MCA_x", "/home/u/.strata/mca-params.conf:3", "the command line", ... */
    enum st_param_source source;
};

struct st_settings {
    struct st_setting *v;
    size_t n, room;
};

int st_settings_add(struct st_settings *set, enum st_param_source source, const char *name, const char *value,
                    const char *where);
/* The one that counts: highest source, among equals the one added last. NULL: none, the default holds. */
const struct st_setting *st_settings_find(const struct st_settings *set, const char *name);
/* Everything: API, command line, environment, files. */
int st_settings_collect(struct st_settings *set, const strata_config_t *config, char *err, size_t err_size);
void st_settings_free(struct st_settings *set);

/* Adds what a parameter file says. STRATA_ERR_NOT_FOUND: there is no such file; err is written in that case too. */
int st_param_file_read(struct st_settings *set, const char *path, char *err, size_t err_size);

/* "$HOME/tail", malloc'ed, or NULL without a home folder. */
char *st_home_path(const char *tail);

/* ---- selection lists (selection.c) -------------------------------------------------------------------------- */

struct st_selection {
    bool exclude;
    char **names;
    size_t n; /* 0: everything is admitted */
};

/* STRATA_ERR_PARAM with the reason in `why` for a list that mixes inclusion and exclusion. */
int st_selection_parse(const char *text, struct st_selection *out, char *why, size_t why_size);
void st_selection_free(struct st_selection *sel);
/* *by_name: an include list names it. */
bool st_selection_admits(const struct st_selection *sel, const char *name, bool *by_name);
/* Whether one of the settings is a parameter of the component. */
bool st_settings_configure(const struct st_settings *settings, const char *framework, const char *name);
/* Whether the framework's list among the settings excludes the component, and no setting is a parameter of it. */
bool st_selection_passes_over(const struct st_settings *settings, const char *framework, const char *name);

/* ---- the repository (repository.c, elf_check.c) ---------------------------------------------------------------- */

/* A plugin file, or a component linked into the library, and what became of it. */
struct st_plugin {
    char *framework, *name;
    char *path;                           /* of the file, or ST_LINKED_IN */
    const struct st_component *component; /* NULL: not loaded, for `reason` */
    char *reason;
    bool left_out; /* only its name is known: nobody has looked into the file */
};
#define ST_LINKED_IN "(linked in)"

struct st_plugin_list {
    struct st_plugin *v; /* sorted by framework, then name; behind those, what was loaded later */
    size_t n, room;
    size_t n_left; /* of frameworks that come later: there is room for that many more */
    bool fixed;    /* entries may not move any more */
};

/* What to do with a plugin: pass it over for now, enter its name only, or load it. */
enum st_want { ST_WANT_LATER, ST_WANT_NAME, ST_WANT_LOADED };
struct st_wanted {
    enum st_want (*want)(const struct st_wanted *wanted, const char *framework, const char *name);
    const void *arg;
};

/* Opens what the colon list of folders and the linked-in table hold, as far as it is wanted. Counts one user of the
 * repository until st_repository_close. Only STRATA_ERR_NOMEM and STRATA_ERR_SYSTEM fail; a bad plugin is an entry with
 * a reason. What is linked in costs nothing, and is loaded where its name is wanted. */
int st_repository_open(const char *folders, const struct st_wanted *wanted, struct st_plugin_list *out, char *err,
                       size_t err_size);
/* Adds what was passed over and is wanted now, and loads entries that were left out, without moving one. */
int st_repository_add(const char *folders, const struct st_wanted *wanted, struct st_plugin_list *list);
void st_repository_close(struct st_plugin_list *list);

/* Checks that the file is a whole shared object for this machine, so that mapping it cannot fault. */
int st_elf_check(const char *path, char *why, size_t why_size);
/* Magic, size, version; then names, rows. Touches nothing further of a component that fails a check. */
int st_component_check(const struct st_component *c, const char *framework, const char *name, char *why,
                       size_t why_size);

/* ---- the context's component system (params.c) ------------------------------------------------------------------ */

/* One component in one context. */
struct st_item {
    const struct st_plugin *plugin;
    void *config;
    struct st_param priority_row;
    char priority_text[16];
    int64_t priority;
    bool admitted, by_name;
    bool broken; /* failed in open, or does not fit: not merely of no use here */
    enum st_info_fate fate;
    char *reason; /* of the fate; "" */
};

struct st_framework {
    char *name;
    struct st_param row; /* its selection list */
    const char *list;
    struct st_selection selection;
    bool waits; /* its plugins are loaded when they are first asked for */
};

/* One parameter in one context. */
struct st_var {
    char *name;                        /* full */
    const char *framework, *component; /* "btl", "sm"; "" for a framework's list; "mca", "base" */
    const struct st_param *row;
    void *config;      /* the struct that row->offset points into */
    const char *text;  /* owned by the setting or the row */
    const char *where; /* "default", or the setting's */
    enum st_param_source source;
};

/* Parameters of the component system itself. */
struct st_mca_config {
    const char *component_path, *param_files;
};

struct st_mca {
    pthread_mutex_t loading; /* of what is loaded later, by whichever thread asks for it */
    struct st_settings settings;
    char *folders; /* that were searched */
    struct st_plugin_list plugins;
    struct st_item *items; /* one per plugin, same order; with room for those that were left out */
    size_t n_items;
    struct st_framework *frameworks;
    size_t n_frameworks;
    struct st_var *vars;
    size_t n_vars, room_vars;
    struct st_mca_config own;
    struct st_base_config base;
};

/* Rows of the component system itself, offsets into struct st_mca_config. */
extern const struct st_param st_mca_params[];
extern const size_t st_n_mca_params;

/* params.c: makes mca->vars, resolves and stores every value, refuses unknown names. */
int st_params_resolve(struct st_mca *mca, char *err, size_t err_size);
/* The parameters of items that were loaded later; no setting names one of them. */
int st_params_extend(struct st_mca *mca, char *err, size_t err_size);
/* The folders to search: mca_component_path or the default; malloc'ed. */
char *st_component_folders(const struct st_settings *set);

/* selection.c: fills admitted and by_name of every item. */
int st_selection_apply(struct st_mca *mca, char *err, size_t err_size);
/* The same for one item that came later. */
void st_selection_apply_to(struct st_item *item, const struct st_framework *f);

/* mca.c: loads the plugins of a framework that waits; with NULL of all that wait, and those that lists exclude. */
int st_mca_load(struct st_mca *mca, const char *framework, char *err, size_t err_size);

struct st_item *st_item_of(const struct st_mca *mca, const struct st_component *c);
void st_item_set(struct st_item *item, enum st_info_fate fate, const char *reason);

#endif

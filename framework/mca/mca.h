/* What the rest of the core asks of the component system. One struct st_mca per context: parameter values with their
 * sources, selection lists, and the record of what happened to each component. The repository of opened plugins behind
 * it is process-wide, counted and locked. */
#ifndef ST_MCA_MCA_H
#define ST_MCA_MCA_H

#include <stdio.h>
#include <strata/sdk/component.h>

struct st_mca;

/* Which plugins are loaded at once: all, or those that the job needs at its start. Not needed are those that a list
 * excludes, of which the name is known, and those of frameworks that a job may never ask for (memory, mpool, rcache,
 * coll): they follow with the first call of st_mca_candidates for their framework. A setting that names a component,
 * or a framework of the latter, has it loaded at once. */
enum st_mca_load { ST_MCA_ALL, ST_MCA_NEEDED };

/* Reads settings, command line, environment and files; opens the plugins on the search path (mca_component_path) and
 * the linked-in table; registers the parameters of all of them. On failure `err` holds the text for the user: a
 * malformed file (file, line, reason), an unknown component or parameter (nearest match), a value that does not parse
 * or is out of range: STRATA_ERR_PARAM; a component asked for by name that could not be loaded: STRATA_ERR_NOT_FOUND.
 */
int st_mca_create(const strata_config_t *config, enum st_mca_load load, struct st_mca **out, char *err,
                  size_t err_size);
void st_mca_destroy(struct st_mca *mca);

/* The filled config of the rows that belong to no component ("mca_base_..."): st_base_params of
 * framework/base/base_params.h, which st_mca_create registers. */
struct st_base_config;
const struct st_base_config *st_mca_base_config(const struct st_mca *mca);

/* Components of one framework that the user's list admits, highest priority first, in a malloc'ed array that the caller
 * frees; those whose ops_size differs from
 * `ops_size` are rejected with a reason. */
struct st_candidate {
    const struct st_component *component;
    const void *config; /* filled config struct */
    int priority;
    bool by_name; /* the user's include list names it: failing to open is a hard error */
};
int st_mca_candidates(struct st_mca *mca, const char *framework, uint32_t ops_size, struct st_candidate **out,
                      size_t *n);
/* Whether the plugins of a framework are not loaded, since nothing has asked for them: no setting names it. */
bool st_mca_waits(const struct st_mca *mca, const char *framework);

/* Whether a setting, from whatever source, is a parameter of the component. */
bool st_mca_configured(const struct st_mca *mca, const struct st_component *c);

/* Records what became of a candidate, for --explain. `reason` is copied; NULL leaves the reason recorded before as it
 * is. st_reject records ST_FATE_REJECTED with its text. */
enum st_fate { ST_FATE_CHOSEN, ST_FATE_UNUSED, ST_FATE_REJECTED };
void st_mca_fate(struct st_mca *mca, const struct st_component *c, enum st_fate fate, const char *reason);
/* Records that c failed in open, for another reason than that it is of no use here. */
void st_mca_broken(struct st_mca *mca, const struct st_component *c);
/* One line for each component that was skipped, saying why, for those who want to know. A warning by rank 0 only for
 * one that the user's list names and that has failed without ending strata_init: what nobody asked for is passed over
 * in silence, for whatever reason. Components that the user's lists exclude are not mentioned. */
void st_mca_say_skipped(const strata_t *s, const struct st_mca *mca);
/* The name of a plugin of the framework that the user's lists admit and that could not be loaded, from no folder at
 * all, with *why saying what is wrong; NULL: there is none. */
const char *st_mca_unloaded(const struct st_mca *mca, const char *framework, const char **why);
/* The reason recorded last for c, or "". */
const char *st_mca_reject_reason(const struct st_mca *mca, const struct st_component *c);

#endif

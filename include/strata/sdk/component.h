/* Components: descriptor of a plugin, its parameters and its help texts.
 *
 * A plugin is a shared object strata_FRAMEWORK_NAME.so that exports exactly one symbol, st_component_FRAMEWORK_NAME, of
 * type `const struct st_component`. The repository checks magic, struct_size and abi_version, in that order, and
 * touches nothing else of a plugin that fails. Built statically the same symbol is listed in a generated table. */
#ifndef STRATA_SDK_COMPONENT_H
#define STRATA_SDK_COMPONENT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/strata.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ST_COMPONENT_MAGIC 0x5354524154413031ull /* "STRATA01" */
#define ST_ABI_VERSION     6u                    /* raised by every incompatible change below sdk/ */

/* Marks functions that libstrata exports for plugins, and the one symbol that a plugin exports. */
#define ST_API STRATA_API
/* Declares and begins the definition of a component: ST_COMPONENT(btl, sm) = {...}; At file scope, in C++ as well. */
#ifdef __cplusplus
#define ST_COMPONENT(framework, name)                                                                                  \
    extern "C" STRATA_API const struct st_component st_component_##framework##_##name;                                 \
    const struct st_component st_component_##framework##_##name
#else
#define ST_COMPONENT(framework, name)                                                                                  \
    STRATA_API extern const struct st_component st_component_##framework##_##name;                                     \
    const struct st_component st_component_##framework##_##name
#endif

/* ---- parameters ------------------------------------------------------------------------------------------ */

/* Types of parameters and the C type of their field in the config struct. */
enum st_param_type {
    ST_PARAM_BOOL,   /* bool:         0/1, true/false, yes/no, on/off */
    ST_PARAM_INT,    /* int64_t:      decimal, 0x hexadecimal */
    ST_PARAM_SIZE,   /* size_t bytes: suffix k, m, g (1024-based) */
    ST_PARAM_DOUBLE, /* double */
    ST_PARAM_STRING, /* const char *: owned by the context, valid until finalize */
    ST_PARAM_ENUM    /* int:          index into `choices` */
};

/* One row per parameter, in the file that uses it. Its full name is framework_component_name. The value is
 * stored at `offset` of the component's config struct before open() is called and never changes afterwards. */
struct st_param {
    const char *name;           /* without the framework and component */
    enum st_param_type type;    /* of the field at offset */
    size_t offset;              /* offsetof in the config struct */
    const char *dflt;           /* as a user would write it */
    double min;                 /* smallest value, for INT, SIZE and DOUBLE; min == max == 0: no range */
    double max;                 /* largest value */
    const char *unit;           /* "bytes", "us", "messages", ... or NULL */
    const char *help;           /* one sentence; obligatory */
    int level;                  /* 1 user .. 9 developer, as strata-info --level filters */
    const char *const *choices; /* NULL-terminated, for ENUM */
};

/* Where a value came from, weakest first. */
enum st_param_source {
    ST_SOURCE_DEFAULT,
    ST_SOURCE_FILE,
    ST_SOURCE_ENVIRONMENT,
    ST_SOURCE_COMMAND_LINE,
    ST_SOURCE_API
};

/* ---- help texts ------------------------------------------------------------------------------------------ */

/* A message for users, kept beside the component: the error, its place, and the remedy. */
struct st_help_topic {
    const char *topic; /* for st_help */
    const char *text;  /* printf format */
};

/* ---- counters -------------------------------------------------------------------------------------------- */

/* One row per counter, in the file that counts. Its full name is framework_component_name, like a parameter's. Under
 * this name strata_counters, strata-info --counters and the performance variables of an embedding MPI show it. */
struct st_counter {
    const char *name;           /* without the framework and component */
    const char *unit;           /* of the value: "messages", "bytes", ... */
    strata_counter_kind_t kind; /* what it is */
    const char *help;           /* one sentence; obligatory */
};
#define ST_COUNTERS_MAX 64 /* rows of one component */

/* ---- the component ----------------------------------------------------------------------------------------- */

/* A component; constant, found by the repository in a plugin or in the linked-in table. */
struct st_component {
    uint64_t magic;        /* ST_COMPONENT_MAGIC */
    uint32_t struct_size;  /* sizeof(struct st_component) */
    uint32_t abi_version;  /* ST_ABI_VERSION */
    const char *framework; /* "btl", "rte", ... */
    const char *name;      /* "sm" */
    const char *version;   /* its own; for strata-info */
    const char *summary;   /* one line for strata-info */
    uint32_t ops_size;     /* sizeof the framework's ops struct below, checked by the framework */
    int priority;          /* default; users override it by framework_name_priority, added by the base. Negative: only
                              a candidate when the user's list names the component */
    const struct st_param *params;    /* n_params rows, or NULL */
    size_t n_params;                  /* rows of params */
    size_t config_size;               /* bytes of the config struct; the base allocates and zeroes one per context */
    const struct st_help_topic *help; /* n_help rows, or NULL */
    size_t n_help;                    /* rows of help */
    /* struct st_btl_component_ops, st_pml_component_ops, ... of the framework's contract header */
    const void *ops;
    const struct st_counter *counters; /* n_counters rows, or NULL */
    size_t n_counters;                 /* rows of counters; at most ST_COUNTERS_MAX */
};

/* The fields that every component fills in the same way. In C++ before C++20: st_component_head. */
#define ST_COMPONENT_HEAD(fw, nm, vers, summ)                                                                          \
    .magic = ST_COMPONENT_MAGIC, .struct_size = sizeof(struct st_component), .abi_version = ST_ABI_VERSION,            \
    .framework = (fw), .name = (nm), .version = (vers), .summary = (summ)

#ifdef __cplusplus
/* A component with the fields of ST_COMPONENT_HEAD, the others empty: C++17 has no designated initialisers, so that a
 * constexpr function begins with this, assigns the other members, and returns what ST_COMPONENT is set to. */
constexpr struct st_component st_component_head(const char *framework, const char *name, const char *version,
                                                const char *summary)
{
    return {ST_COMPONENT_MAGIC,
            sizeof(struct st_component),
            ST_ABI_VERSION,
            framework,
            name,
            version,
            summary,
            0,
            0,
            nullptr,
            0,
            0,
            nullptr,
            0,
            nullptr,
            nullptr,
            0};
}
#endif

/* ---- services of the base ------------------------------------------------------------------------------- */

/* How important a line is; mca_base_verbose says up to which level lines are shown. */
enum st_log_level { ST_LOG_ERROR = 0, ST_LOG_WARN = 1, ST_LOG_INFO = 2, ST_LOG_DEBUG = 3 };

/* One line to stderr (or to the embedder), prefixed with host, rank and component. Levels above the parameter
 * mca_base_verbose are dropped. `s` may be NULL before a context exists. Thread safe. */
ST_API void st_log(const strata_t *s, enum st_log_level level, const char *component, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Shows topic `topic` of `c`'s help texts, filled in from the arguments, as an error. */
ST_API void st_help(const strata_t *s, const struct st_component *c, const char *topic, ...);

/* Formats the reason why a component cannot be used here: kept for strata-info --explain, and printed if the user named
 * the component. Call it from open() before returning an error. */
ST_API void st_reject(strata_t *s, const struct st_component *c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True if the user's list names the component, as in --mca btl tcp,self: it then opens also where it would otherwise
 * have no task. False without a context's component system, as in a unit test. */
ST_API bool st_asked_by_name(const strata_t *s, const struct st_component *c);

/* Writes "name: reason; name: reason" for the components of a framework that could not be used in this context, for an
 * error message when no component is left. An empty string: there are none. */
ST_API void st_rejected(const strata_t *s, const char *framework, char *text, size_t size);

/* A source of counters, usually a module: a member of its own struct, used from st_counters_add to st_counters_remove.
 */
struct st_counting {
    const struct st_component *component; /* whose rows of counters these are */
    /* Adds the current values to value[], in the order of the rows. Called with the context's lock held, like
     * mem_report; the values of several modules of a component are added up. */
    void (*count)(const struct st_counting *counting, uint64_t *value);
    struct st_counting *next; /* the base's */
};

/* Registers a source of counters for strata_counters. From inside a component's open. */
ST_API void st_counters_add(strata_t *s, struct st_counting *counting);
/* Removes the source, in a module's close or when its open fails; no effect if it has not been added. */
ST_API void st_counters_remove(strata_t *s, struct st_counting *counting);

/* The context's facts, for components. */
ST_API bool st_thread_multiple(const strata_t *s);

/* The parameter mca_base_tune: selection of protocols where no parameter sets them. */
enum st_tune {
    ST_TUNE_OFF,   /* by fixed sizes: transports measure nothing */
    ST_TUNE_FACTS, /* by measurements of the transports */
    ST_TUNE_ONLINE /* the same, then by the times of real messages */
};
/* The value of mca_base_tune; ST_TUNE_FACTS by default. */
ST_API enum st_tune st_tuning(const strata_t *s);
struct st_rte;
ST_API struct st_rte *st_rte(const strata_t *s); /* never NULL after the rte framework is selected */

#ifdef __cplusplus
}
#endif
#endif

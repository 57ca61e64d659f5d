/* Introspection for tools: components with their outcome and its reason; parameters with their values and sources.
 * Works without joining a job (st_info_create), or after a try to join one (st_info_try). */
#ifndef STRATA_SDK_INFO_H
#define STRATA_SDK_INFO_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

struct st_mca;

/* Outcome for a component. */
enum st_info_fate {
    ST_INFO_LOADED = 0, /* loaded; nobody has tried to open it (yet) */
    ST_INFO_NOT_LOADED, /* the plugin could not be used; reason says why */
    ST_INFO_EXCLUDED,   /* the user's list does not admit it */
    ST_INFO_CHOSEN,
    ST_INFO_UNUSED,  /* could have been used, but another one was preferred */
    ST_INFO_REJECTED /* open() failed, or another check of its framework; reason says why */
};

/* One component; strings are valid as long as the component system. */
struct st_info_component {
    const char *framework;        /* "btl" */
    const char *name;             /* "sm" */
    const char *path;             /* of the plugin, or "(linked in)" */
    const char *version;          /* "" when not loaded */
    const char *summary;          /* "" when not loaded */
    const char *default_priority; /* text of a number; "" when not loaded */
    int priority;                 /* in effect */
    enum st_info_fate fate;       /* its outcome */
    const char *reason;           /* one line, or "" */
    bool by_name;                 /* the user's include list names it */
};

/* One parameter. */
struct st_info_param {
    const char *name;      /* full name, as --mca takes it */
    const char *framework; /* of the component */
    const char *component; /* "btl", "sm"; "btl", "" for the list; "mca", "base" for the core's own */
    const char *type;      /* "bool", "int", "size", "double", "string", "enum" */
    const char *value;     /* as a user would write it */
    const char *dflt;      /* likewise */
    const char *source;    /* "default", "file", "environment", "command line", "api" */
    const char *where;     /* file and line, name of the variable, ...; "default" */
    const char *allowed;   /* range or choices in words, valid during the call; "" when anything goes */
    const char *unit;      /* or "" */
    const char *help;      /* one sentence */
    int level;             /* 1 user .. 9 developer */
};

/* One counter that a component has, whether it is in use or not. */
struct st_info_counter {
    const char *framework;      /* of the component */
    const char *component;      /* "tree"; "" of a framework whose components are not loaded yet */
    const char *name;           /* without those: "hits" */
    const char *unit;           /* of the value */
    const char *help;           /* one sentence */
    strata_counter_kind_t kind; /* what the value is */
    bool common;                /* each component of the framework has it */
};

/* One module of a transport: a device, or a port of one. Valid during the call. */
struct st_info_device {
    const char *component;        /* "openib" */
    const char *summary;          /* of the component, one line */
    const char *capabilities[12]; /* "get", "put", ...; NULL behind the last */
    uint32_t eager_limit;         /* largest payload sent before the receiver has matched, bytes */
    uint32_t stream_limit;        /* largest message sent as fragments without waiting for the receiver, bytes */
    uint32_t max_send;            /* largest payload of one fragment, bytes */
    uint32_t zcopy_min;           /* smallest payload taken from the program's memory, bytes; 0: none is */
    uint32_t max_key;             /* bytes of a registration's key on the wire; 0: there are none */
    size_t rdma_min;              /* smallest message moved by get or put, bytes; 0: none is */
    size_t rdma_pipeline;         /* bytes of one get or put where memory is registered piece by piece */
    uint32_t latency_ns;          /* that the module states, of a short message, one way */
    uint32_t bandwidth_mbs;       /* that the module states, MB/s */
    int exclusivity;              /* the modules of the highest that reach a peer are used for it */
    bool needs_registration;      /* memory of get and put must be registered */
    const char *own;              /* one JSON object from the module ("device", ...), or "" */
};

/* Reads settings and opens components like strata_init, but opens no component's modules and joins no job.
 * `config` may be NULL. STRATA_ERR_PARAM or STRATA_ERR_NOT_FOUND with the text for the user in err. */
ST_API int st_info_create(const strata_config_t *config, struct st_mca **out, char *err, size_t err_size);
/* The same for the components that strata_init would load at its start: without those of memory, mpool and rcache,
 * which are loaded when they are first needed, unless a setting names the framework or a parameter of it. */
ST_API int st_info_create_needed(const strata_config_t *config, struct st_mca **out, char *err, size_t err_size);
/* Makes a context as strata_init would, with all components loaded, and ends it again, to record the outcome for each
 * component. Returns the result of strata_init, with the text in err; *out is set if the component system could be
 * made, also without a context, and NULL otherwise. Calls `look`, unless it is NULL, before it ends the context. */
ST_API int st_info_try(const strata_config_t *config, void (*look)(void *arg, strata_t *s), void *arg,
                       struct st_mca **out, char *err, size_t err_size);
/* Frees the result of st_info_create or st_info_try. */
ST_API void st_info_destroy(struct st_mca *mca);

/* The folders that were searched for plugins, separated by colons. */
ST_API const char *st_info_folders(const struct st_mca *mca);

/* Calls fn for each component, sorted by framework and name. Its data is valid as long as mca, unless noted. */
ST_API void st_info_components(const struct st_mca *mca, void (*fn)(void *arg, const struct st_info_component *c),
                               void *arg);
/* Calls fn for each parameter; those of components that could not be loaded are not known. */
ST_API void st_info_params(const struct st_mca *mca, void (*fn)(void *arg, const struct st_info_param *p), void *arg);
/* The counters of all components that could be loaded, in the order of st_info_components. */
ST_API void st_info_counters(const struct st_mca *mca, void (*fn)(void *arg, const struct st_info_counter *c),
                             void *arg);
/* The modules that are open in a context, as that of st_info_try's `look`. */
ST_API void st_info_devices(strata_t *s, void (*fn)(void *arg, const struct st_info_device *d), void *arg);
/* A word or two for a fate; never NULL. */
ST_API const char *st_info_fate_text(enum st_info_fate fate);

/* "did you mean" for tools: the nearest of n names, or NULL when nothing is near. */
ST_API const char *st_info_nearest(const char *wanted, const char *const *names, size_t n);

#ifdef __cplusplus
}
#endif
#endif

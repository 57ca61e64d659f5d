/* A component in two objects, for a component whose libraries cost every rank memory and time, but which few jobs use.
 *
 * strata_FRAMEWORK_NAME.so is the plugin: the component with its tables of parameters and counters, and an open() that
 * checks whether the body is needed. FRAMEWORK_NAME.so beside it is the body: the rest, linked with the libraries;
 * open() loads it. It exports one symbol, st_body_FRAMEWORK_NAME, made by ST_BODY. If components are linked into the
 * library, the body is linked in as well, and nothing is loaded. */
#ifndef STRATA_SDK_COMPONENT_BODY_H
#define STRATA_SDK_COMPONENT_BODY_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the body, declares and begins the definition of the ops that the plugin's own ops call:
 * ST_BODY(btl, openib, struct st_btl_component_ops) = {...}; At file scope. */
#define ST_BODY(framework, name, type)                                                                                 \
    STRATA_API extern const type st_body_##framework##_##name;                                                         \
    const type st_body_##framework##_##name

/* In the plugin, at file scope: lets ST_BODY_OF find a body that is linked in. */
#define ST_BODY_DECLARE(framework, name, type) __attribute__((weak)) extern const type st_body_##framework##_##name

/* In the plugin: returns the body's ops; NULL: the body cannot be loaded, and `why`, of why_size bytes, has the reason.
 */
#define ST_BODY_OF(framework, name, c, why, why_size)                                                                  \
    (&st_body_##framework##_##name ? &st_body_##framework##_##name : st_component_body(c, why, why_size))

/* The function behind ST_BODY_OF: loads the body of `c` once for the process, after the same check of the file as for
 * plugins. It stays mapped until the process ends. */
ST_API const void *st_component_body(const struct st_component *c, char *why, size_t why_size);

#ifdef __cplusplus
}
#endif
#endif

/* Logging inside the core; components use st_log, st_help and st_reject of <strata/sdk/component.h>. */
#ifndef ST_BASE_LOG_H
#define ST_BASE_LOG_H

#include <strata/sdk/component.h>

bool st_log_wanted(const strata_t *s, enum st_log_level level);
void st_vlog(const strata_t *s, enum st_log_level level, const char *component, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
/* A line that was asked for: as it is, whatever mca_base_verbose says. */
void st_log_plain(const strata_t *s, const char *text);
/* "framework_name", or "base" when c is NULL. */
void st_component_label(const struct st_component *c, char *out, size_t size);

#endif

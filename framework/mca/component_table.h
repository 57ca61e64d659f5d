/* Components that are linked into the library: written by the build, NULL-terminated, empty in the plugin form. */
#ifndef ST_MCA_COMPONENT_TABLE_H
#define ST_MCA_COMPONENT_TABLE_H

#include <strata/sdk/component.h>

extern const struct st_component *const st_component_table[];

#endif

/* Does not export its component. */
#include "fake.h"

STRATA_API extern const int st_component_btl_something_else;
const int st_component_btl_something_else = 1;

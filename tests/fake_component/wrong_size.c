/* A component struct of another length: built for another Strata. */
#include "fake.h"

POISONED(wrong_size) = {ST_COMPONENT_MAGIC, sizeof(struct st_component) + 8, ST_ABI_VERSION, POISON};

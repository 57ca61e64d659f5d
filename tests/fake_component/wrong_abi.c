/* Built for the next ABI version. */
#include "fake.h"

POISONED(wrong_abi) = {ST_COMPONENT_MAGIC, sizeof(struct st_component), ST_ABI_VERSION + 1, POISON};

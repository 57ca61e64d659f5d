/* A struct that is no component. */
#include "fake.h"

POISONED(wrong_magic) = {0x1122334455667788ull, sizeof(struct st_component), ST_ABI_VERSION, POISON};

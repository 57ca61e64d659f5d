#define MATCH_SHARE 1
#include "match_differential.h"

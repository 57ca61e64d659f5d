#define MATCH_SHARE 2
#include "match_differential.h"

#define MATCH_SHARE 10
#include "match_differential.h"

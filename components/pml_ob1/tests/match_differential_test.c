/* one thread */
#define MATCH_SHARE 10
#define MATCH_FULL  10
#define MATCH_SEED  11ul
#include "match_differential.h"

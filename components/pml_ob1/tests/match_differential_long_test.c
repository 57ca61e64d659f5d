/* The short form has another seed than the quick test. */
#define MATCH_SHARE test_form(10, 2)
#define MATCH_FULL  2
#define MATCH_SEED  test_seed(test_form(101, 11))
#include "match_differential.h"

/* A case of a test: one operation, transport, variant and value. */
#ifndef MIBA_CASE_H
#define MIBA_CASE_H

#include <stddef.h>
#include <stdint.h>
#include "names.h"

struct miba_test;

struct miba_case {
    const struct miba_test *test;
    enum miba_op op;               /* OP_NONE: no data moves */
    enum miba_transport transport; /* TRANSPORT_NONE: the same */
    int variant;                   /* index in test->variants; 0 where there are none */
    uint64_t x;
    uint32_t size; /* bytes of a message where x is something else; 0: x says it, or no data moves */
};

/* "qps send RC latency of 8 bytes qps 4": for messages. */
void case_text(const struct miba_case *c, char *text, size_t size);
const char *case_variant(const struct miba_case *c); /* "": the test has none */

struct settings;
struct miba;
/* Goes through the cases of a test, in order, that the settings select, until `visit` returns nonzero, which is
 * returned. A test's own sizes are for RC; UC and UD have the first one. */
int cases_visit(const struct miba_test *test, const struct settings *set,
                int (*visit)(void *arg, const struct miba_case *c), void *arg);

#endif

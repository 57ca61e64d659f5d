/* The account of a rank's memory, for tests/footprint/account_test.sh: every rank speaks to every other, then prints
 * the lines of the process, in kB, and what Strata's own lines add up to. */
#include <stdio.h>
#include <string.h>
#include "support/suite.h"

enum { ROUNDS = 8, MESSAGE = 1024 };

static char in[MESSAGE], out[MESSAGE];

struct lines {
    char text[2048];
    size_t ours;
};

static void take(void *arg, const strata_mem_line_t *line)
{
    struct lines *l = arg;
    size_t n = strlen(l->text);

    if (!line->user && !line->shared)
        l->ours += line->bytes;
    if (strcmp(line->component, "process") == 0)
        snprintf(l->text + n, sizeof l->text - n, ", %s %zu", line->category, line->bytes / 1024);
}

int main(void)
{
    strata_t *s = NULL;
    struct lines l = {.text = ""};

    memset(in, 1, sizeof in);
    memset(out, 1, sizeof out);
    CHECK_OK(strata_init(NULL, &s));
    strata_comm_t *c = strata_world(s);
    int me = strata_rank(s), n = strata_size(s);
    for (int round = 0; round < ROUNDS; round++)
        for (int d = 1; d < n; d++)
            CHECK_OK(strata_sendrecv(c, out, sizeof out, (me + d) % n, 1, in, sizeof in, (me - d + n) % n, 1, NULL));
    CHECK_OK(strata_mem_report(s, take, &l));
    printf("rank %d: ours %zu%s\n", me, l.ours / 1024, l.text);
    CHECK_OK(strata_finalize(s));
    return 0;
}

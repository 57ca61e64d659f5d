/* The contract of transports with processes for ranks, on one machine or several: `btl_contract NAME [WORD]` under a
 * launcher, with two or four ranks, tests btl_NAME by the cases that are for so many; with WORD those whose name
 * contains it. The same cases with threads for ranks: tests/conformance/btl_test.c. */
#include "support/btl_suite.h"
#include "support/watchdog.h"

int main(int argc, char **argv)
{
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    struct tw_rank r = {0};
    int ran = 0;

    CHECK_MSG(argc > 1, "usage: btl_contract NAME [WORD]");
    CHECK_OK(strata_init(NULL, &r.s));
    r.comm = strata_world(r.s);
    r.rank = strata_rank(r.s);
    r.n = strata_size(r.s);
    watchdog_name_thread(r.rank);
    for (size_t i = 0; btl_case_at(i); i++) {
        const struct btl_case *c = btl_case_at(i);
        if (c->ranks != r.n || (argc > 2 && !strstr(c->name, argv[2])))
            continue;
        btl_case_join(c, argv[1], &r);
        ran++;
    }
    CHECK_MSG(ran > 0, "no case is for %d ranks", r.n);
    CHECK_OK(strata_finalize(r.s));
    watchdog_stop(dog);
    if (r.rank == 0)
        printf("contract of %s: %d cases on %d ranks\n", argv[1], ran, r.n);
    return 0;
}

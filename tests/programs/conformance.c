/* The conformance suite with processes for ranks: run it under a launcher. Usage: conformance [WORD]: only cases whose
 * name contains WORD. Cases that need more ranks than the job has are skipped. */
#include "support/suite.h"
#include "support/watchdog.h"

int main(int argc, char **argv)
{
    strata_t *s = NULL;
    char err[1024] = "";
    strata_config_t config = STRATA_CONFIG_INIT;
    config.thread_level = STRATA_THREAD_MULTIPLE;
    config.error_text = err;
    config.error_text_size = sizeof err;
    struct watchdog *dog = watchdog_start(test_timeout(1000), 1);
    CHECK_MSG(strata_init(&config, &s) == STRATA_OK, "strata_init: %s", err);
    struct tw_rank r = {.s = s, .comm = strata_world(s), .rank = strata_rank(s), .n = strata_size(s)};
    watchdog_name_thread(r.rank);
    int ran = 0;
    for (int g = 0; suite_all[g]; g++)
        for (size_t i = 0; i < suite_all[g]->n; i++) {
            const struct suite_case *c = &suite_all[g]->cases[i];
            char name[120];
            snprintf(name, sizeof name, "%s/%s", suite_all[g]->name, c->name);
            if (c->ranks > r.n || (argc > 1 && !strstr(name, argv[1])))
                continue;
            if (r.rank < c->ranks)
                c->body(&r);
            CHECK_OK(strata_fence(s));
            ran++;
        }
    CHECK_OK(strata_finalize(s));
    watchdog_stop(dog);
    if (r.rank == 0)
        printf("%d cases passed on %d ranks\n", ran, r.n);
    return 0;
}

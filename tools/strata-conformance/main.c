/* strata-conformance: tests a transport from an installed tree. */
#include "run.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct options o;
    size_t n = 0;
    int status = EXIT_PASSED;

    options_read(&o, argc, argv);
    struct conf_case *cases = conf_cases(&n);
    if (!cases) {
        fprintf(stderr, "strata-conformance: out of memory\n");
        return EXIT_USER;
    }
    if (o.list) {
        for (size_t i = 0; i < n; i++)
            if (options_select(&o, cases[i].name))
                report_list(o.json, &cases[i]);
    } else if (!o.threads && run_launched()) {
        status = run_processes(&o, cases, n);
    } else {
        status = run_threads(&o, cases, n);
    }
    free(cases);
    return status;
}

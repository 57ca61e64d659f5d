/* strata-info: which components and parameters there are, what they are set to, and what would be chosen here. */
#include "info.h"
#include "tuning.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    struct options o = {.level = 9};
    struct report r = {0};
    options_read(&o, argc, argv);
    if (o.live) {
        free(o.settings);
        return live_run(&o);
    }
    if (o.tuning) {
        int status = tuning_run(&o, argv);
        free(o.settings);
        return status;
    }
    int rc = report_make(&r, &o);
    if (rc) {
        fprintf(stderr, "strata-info: %s\n", r.error);
        free(o.settings);
        return rc == STRATA_ERR_PARAM || rc == STRATA_ERR_NOT_FOUND ? EXIT_USER : EXIT_FAILURE;
    }
    int status = report_check_names(&r, &o) ? EXIT_SUCCESS : EXIT_USER;
    if (!status && o.json)
        status = print_json(&r, &o);
    else if (!status)
        print_text(&r, &o);
    fflush(stdout);
    if (!status && r.tried && r.rc) {
        fprintf(stderr, "strata-info: no context could be made: %s\n", r.error);
        status = r.rc == STRATA_ERR_PARAM || r.rc == STRATA_ERR_NOT_FOUND ? EXIT_USER : EXIT_FAILURE;
    }
    report_free(&r);
    free(o.settings);
    if (fflush(stdout) || ferror(stdout)) {
        perror("strata-info: standard output");
        return EXIT_FAILURE;
    }
    return status;
}

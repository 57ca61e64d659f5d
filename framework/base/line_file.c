/* Files of one entry a line. */
#define _GNU_SOURCE
#include <strata/sdk/line_file.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int st_line_file_read(const char *path, bool (*take)(void *arg, const char *line), void *arg, const char *wanted,
                      char *why, size_t why_size)
{
    char *line = NULL;
    size_t room = 0;
    int number = 0, rc = STRATA_OK;
    FILE *f = fopen(path, "re");

    if (!f) {
        snprintf(why, why_size, "%s cannot be read", path);
        return STRATA_ERR_PARAM;
    }
    while (rc == STRATA_OK && getline(&line, &room, f) >= 0) {
        number++;
        line[strcspn(line, "#\n")] = '\0';
        if (line[strspn(line, " \t\r")] != '\0' && !take(arg, line)) {
            snprintf(why, why_size, "%s, line %d: not %s", path, number, wanted);
            rc = STRATA_ERR_PARAM;
        }
    }
    if (rc == STRATA_OK && ferror(f)) { /* a folder opens as well */
        snprintf(why, why_size, "%s cannot be read", path);
        rc = STRATA_ERR_PARAM;
    }
    free(line);
    fclose(f);
    return rc;
}

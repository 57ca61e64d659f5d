/* Parameter files: lines of `name = value`; # starts a comment at the beginning of a line or after a blank. */
#include "framework/mca/internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char *param_file_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return s;
}

static void param_file_cut_comment(char *s)
{
    for (char *p = s; *p; p++) {
        if (*p == '#' && (p == s || isspace((unsigned char)p[-1]))) {
            *p = '\0';
            return;
        }
    }
}

/* NULL: a good line. Sets *name to NULL for a line that says nothing. */
static const char *param_file_split_line(char *line, size_t length, char **name, char **value)
{
    *name = *value = NULL;
    if (strlen(line) != length)
        return "the line contains a zero byte";
    param_file_cut_comment(line);
    char *text = param_file_trim(line);
    if (!*text)
        return NULL;
    char *eq = strchr(text, '=');
    if (!eq)
        return "no \"=\" in the line; write: name = value";
    *eq = '\0';
    char *n = param_file_trim(text);
    if (!*n)
        return "nothing before \"=\"; write: name = value";
    for (const char *p = n; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return "a parameter's name is made of letters, digits and _";
    *name = n;
    *value = param_file_trim(eq + 1);
    return NULL;
}

static int param_file_read_lines(struct st_settings *set, FILE *f, const char *path, char *err, size_t err_size)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t got;
    int rc = STRATA_OK;
    for (unsigned number = 1; (got = getline(&line, &room, f)) >= 0; number++) {
        char *name, *value;
        const char *bad = param_file_split_line(line, (size_t)got, &name, &value);
        if (bad) {
            rc = st_mca_fail(STRATA_ERR_PARAM, err, err_size, "%s:%u: %s", path, number, bad);
            break;
        }
        if (!name)
            continue;
        size_t n = strlen(path) + 16;
        char *where = malloc(n);
        if (!where) {
            rc = st_mca_fail(STRATA_ERR_NOMEM, err, err_size, "%s:%u: out of memory", path, number);
            break;
        }
        snprintf(where, n, "%s:%u", path, number);
        rc = st_settings_add(set, ST_SOURCE_FILE, name, value, where);
        free(where);
        if (rc) {
            st_mca_fail(rc, err, err_size, "%s:%u: out of memory", path, number);
            break;
        }
    }
    if (!rc && ferror(f))
        rc = st_mca_fail(STRATA_ERR_PARAM, err, err_size, "%s: cannot be read: %s", path, strerror(errno));
    free(line);
    return rc;
}

int st_param_file_read(struct st_settings *set, const char *path, char *err, size_t err_size)
{
    FILE *f = fopen(path, "re");
    if (!f) {
        int e = errno;
        struct stat st;
        /* A file behind a folder that we may not enter counts as none; one that we see and may not read is an error. */
        bool absent = e == ENOENT || e == ENOTDIR || (e == EACCES && stat(path, &st));
        return st_mca_fail(absent ? STRATA_ERR_NOT_FOUND : STRATA_ERR_PARAM, err, err_size, "%s: cannot be opened: %s",
                           path, strerror(e));
    }
    int rc = param_file_read_lines(set, f, path, err, err_size);
    fclose(f);
    return rc;
}

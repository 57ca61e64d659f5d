/* Error lines and "did you mean": the nearest of the names that exist. */
#include "framework/mca/internal.h"

#include <stdlib.h>
#include <string.h>

int st_mca_fail(int rc, char *err, size_t err_size, const char *format, ...)
{
    if (err && err_size) {
        va_list ap;
        va_start(ap, format);
        vsnprintf(err, err_size, format, ap);
        va_end(ap);
    }
    return rc;
}

enum { LONGEST = 96 }; /* names beyond this are compared by their beginning */

size_t st_edit_distance(const char *a, const char *b)
{
    size_t na = strnlen(a, LONGEST), nb = strnlen(b, LONGEST);
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

void st_suggest_offer(struct st_suggest *sg, const char *name)
{
    size_t d = st_edit_distance(sg->wanted, name);
    /* A name of which most letters would have to change is no help. */
    size_t limit = (strlen(sg->wanted) + 1) / 2 + 1;
    if (d > limit || d >= strlen(sg->wanted) + strlen(name))
        return;
    if (!sg->best || d < sg->distance) {
        sg->best = name;
        sg->distance = d;
    }
}

const char *st_suggest_text(const struct st_suggest *sg, char *buf, size_t size)
{
    if (sg->best)
        snprintf(buf, size, "; did you mean \"%s\"?", sg->best);
    else if (size)
        buf[0] = '\0';
    return buf;
}

const char *st_info_nearest(const char *wanted, const char *const *names, size_t n)
{
    struct st_suggest sg = {.wanted = wanted};
    for (size_t i = 0; i < n; i++)
        st_suggest_offer(&sg, names[i]);
    return sg.best;
}

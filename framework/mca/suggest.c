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

/* Letters that changed places are the likeliest mistake. */
enum { SWAP = 3, EDIT = 4 };

/* Optimal string alignment (Damerau 1964; no part is edited twice), by three rows of the table. */
size_t st_edit_cost(const char *a, const char *b)
{
    size_t na = strnlen(a, LONGEST), nb = strnlen(b, LONGEST);
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        last[j] = j * EDIT;
    for (size_t i = 1; i <= na; i++) {
        row[0] = i * EDIT;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1] ? EDIT : 0);
            if (last[j] + EDIT < best)
                best = last[j] + EDIT;
            if (row[j - 1] + EDIT < best)
                best = row[j - 1] + EDIT;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + SWAP < best)
                best = before[j - 2] + SWAP;
            row[j] = best;
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[nb];
}

/* One edit, or one for each three letters: what differs more is another word. A single letter is no hint. */
void st_suggest_offer(struct st_suggest *sg, const char *name)
{
    size_t n = strlen(sg->wanted), edits = n < 2 ? 0 : n < 6 ? 1 : n / 3;
    size_t cost = st_edit_cost(sg->wanted, name);
    if (cost > edits * EDIT || n + strlen(name) <= 3)
        return;
    if (!sg->best || cost < sg->cost) {
        sg->best = name;
        sg->cost = cost;
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

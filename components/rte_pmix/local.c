/* Which ranks share this machine, from the launcher's text. */
#include "rte_pmix.h"

#include <stdlib.h>

static int compare_int(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Reads "7" or "3-5" at *text and moves past it and one comma. False at the end or at something else. */
static bool next_range(const char **text, long *first, long *last)
{
    char *end;
    if (!**text)
        return false;
    *first = strtol(*text, &end, 10);
    if (end == *text || *first < 0)
        return false;
    *last = *first;
    if (*end == '-') {
        const char *from = end + 1;
        *last = strtol(from, &end, 10);
        if (end == from)
            return false;
    }
    if (*end == ',')
        end++;
    *text = end;
    return true;
}

/* Appends the ranks of the text to list (NULL: counts only). */
static int local_collect(const char *text, int size, int *list)
{
    long first, last;
    int n = 0;
    while (next_range(&text, &first, &last))
        for (long r = first; r <= last && r < size; r++) {
            if (list)
                list[n] = (int)r;
            n++;
        }
    return n;
}

int rte_pmix_parse_ranks(const char *text, int size, int me, int **out, int *n)
{
    int count = local_collect(text, size, NULL);
    int *list = malloc(((size_t)count + 1) * sizeof(int));
    if (!list)
        return STRATA_ERR_NOMEM;
    local_collect(text, size, list);
    list[count++] = me;
    qsort(list, (size_t)count, sizeof(int), compare_int);
    int k = 0;
    for (int i = 0; i < count; i++)
        if (k == 0 || list[i] != list[k - 1])
            list[k++] = list[i];
    *out = list;
    *n = k;
    return STRATA_OK;
}

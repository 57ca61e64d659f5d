/* What each rank sent to each other one: by the sender's count, or where the sender has left no record by the
 * receiver's. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include "merge.h"

static void add(const struct merge *m, struct merge_cell **table, int from, int to, const json_t *peer,
                const char *messages, const char *bytes)
{
    const char *by = json_string_value(json_object_get(peer, "by"));
    if (!table[from])
        table[from] = calloc((size_t)m->n, sizeof(**table));
    if (!table[from])
        return;
    struct merge_cell *cell = &table[from][to];
    cell->messages += (uint64_t)json_integer_value(json_object_get(peer, messages));
    cell->bytes += (uint64_t)json_integer_value(json_object_get(peer, bytes));
    snprintf(cell->by, sizeof(cell->by), "%s", by ? by : "");
}

void merge_add_peers(struct merge *m, int rank, const json_t *peers)
{
    const json_t *peer;
    size_t i;
    json_array_foreach(peers, i, peer)
    {
        json_int_t other = json_integer_value(json_object_get(peer, "rank"));
        if (other < 0 || other >= m->n)
            continue;
        add(m, m->sent, rank, (int)other, peer, "messages_sent", "bytes_sent");
        add(m, m->heard, (int)other, rank, peer, "messages_received", "bytes_received");
    }
}

/* NULL: nothing was sent. */
static const struct merge_cell *cell_of(const struct merge *m, int from, int to)
{
    struct merge_cell *const *table = m->present[from] ? m->sent : m->heard;
    return table[from] && table[from][to].messages ? &table[from][to] : NULL;
}

static void cell_text(const struct merge *m, int from, int to, char *out, size_t size)
{
    const struct merge_cell *cell = cell_of(m, from, to);
    if (cell)
        snprintf(out, size, "%llu/%llu", (unsigned long long)cell->messages, (unsigned long long)cell->bytes);
    else
        snprintf(out, size, "%s", m->present[from] || m->present[to] ? "." : "?");
}

void merge_print_matrix(const struct merge *m, FILE *out)
{
    char text[64];
    int *width = calloc((size_t)m->n, sizeof(*width));
    if (!width)
        return;
    for (int to = 0; to < m->n; to++) {
        width[to] = snprintf(text, sizeof(text), "%d", to);
        for (int from = 0; from < m->n; from++) {
            cell_text(m, from, to, text, sizeof(text));
            width[to] = (int)strlen(text) > width[to] ? (int)strlen(text) : width[to];
        }
    }
    fprintf(out, "strata-run: messages/bytes from the rank of the row to the rank of the column, %s\n%8s",
            m->asked ? "while the job runs" : "at the end", "");
    for (int to = 0; to < m->n; to++)
        fprintf(out, " %*d", width[to], to);
    fputc('\n', out);
    for (int from = 0; from < m->n; from++) {
        fprintf(out, "%8d", from);
        for (int to = 0; to < m->n; to++) {
            cell_text(m, from, to, text, sizeof(text));
            fprintf(out, " %*s", width[to], text);
        }
        fputc('\n', out);
    }
    free(width);
}

void merge_print_dot(const struct merge *m, FILE *out)
{
    fprintf(out, "digraph job {\n  node [shape=circle];\n");
    for (int i = 0; i < m->n; i++)
        fprintf(out, "  %d;\n", i);
    for (int from = 0; from < m->n; from++)
        for (int to = 0; to < m->n; to++) {
            const struct merge_cell *cell = cell_of(m, from, to);
            if (cell)
                fprintf(out, "  %d -> %d [label=\"%llu messages\\n%llu bytes\\n%s\"];\n", from, to,
                        (unsigned long long)cell->messages, (unsigned long long)cell->bytes, cell->by);
        }
    fprintf(out, "}\n");
}

/* The records of many ranks as one report. */
#ifndef RUN_MERGE_H
#define RUN_MERGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum merge_table { MERGE_COUNTERS, MERGE_MEMORY, MERGE_TABLES };

/* What one rank sent to another. */
struct merge_cell {
    uint64_t messages, bytes;
    char by[24]; /* the transport */
};

struct merge {
    int n;      /* ranks */
    bool asked; /* while the job ran; else at its end */
    bool *present;
    json_t *rows[MERGE_TABLES]; /* by name: unit, kind and the ranks' values */
    struct merge_cell **sent,
        **heard; /* [from][to] by the sender's count and by the receiver's; rows NULL until used */
};

int merge_create(struct merge *m, int n, bool asked); /* -1: out of memory, and nothing to destroy */
void merge_destroy(struct merge *m);
/* Adds a record of a rank; several of one rank add up. */
void merge_add(struct merge *m, int rank, const json_t *record);
/* A line about the ranks that have left no record; nothing when there are none. */
void merge_print_missing(const struct merge *m, FILE *out);
/* Sum, least and most over the ranks, and each rank's value, of every row that is not 0 everywhere. */
void merge_print_rows(const struct merge *m, enum merge_table table, bool json, FILE *out);
/* merge_pairs.c: ranks x ranks, messages/bytes; as a table, or as a graph for graphviz. */
void merge_print_matrix(const struct merge *m, FILE *out);
void merge_print_dot(const struct merge *m, FILE *out);
/* merge_pairs.c: adds what a rank says of its peers. */
void merge_add_peers(struct merge *m, int rank, const json_t *peers);

#endif

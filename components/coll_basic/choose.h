/* The choice of an algorithm: a pure function of what is the same at all members. */
#ifndef COLL_BASIC_CHOOSE_H
#define COLL_BASIC_CHOOSE_H

#include <stdbool.h>
#include <strata/coll.h>

enum basic_algorithm {
    BASIC_TREE,
    BASIC_DOUBLING,
    BASIC_RING,
    BASIC_BRUCK,
    BASIC_PAIRWISE,
    BASIC_LINEAR,
    BASIC_LEADER, /* between groups, by the first member of each */
    BASIC_ALGORITHMS
};

/* A line of a user's table. */
struct basic_rule {
    strata_coll_kind_t kind;
    bool inter;   /* between two groups */
    int ranks;    /* up to this number; of both groups together */
    size_t bytes; /* up to this size of a block */
    enum basic_algorithm algorithm;
};

struct basic_table {
    struct basic_rule *rules;
    size_t n;
};

/* As a user's table spells it. */
const char *basic_kind_name(strata_coll_kind_t kind);

/* Whether the component has this algorithm for this kind. RING of a reduction is only for commutative ones. */
bool basic_can(strata_coll_kind_t kind, enum basic_algorithm a, bool commutative);

/* The first rule of the table that fits, else the default. `bytes`: of a block; 0 for the kinds whose sizes differ from
 * rank to rank. */
enum basic_algorithm basic_choose(const struct basic_table *t, strata_coll_kind_t kind, size_t bytes, int ranks,
                                  bool commutative);

/* The same between two groups, where commuting makes no difference. `bytes`: of a block of an
 * allreduce, else 0: some members do not know it. `ranks`: of both groups together. */
bool basic_can_inter(strata_coll_kind_t kind, enum basic_algorithm a);
enum basic_algorithm basic_choose_inter(const struct basic_table *t, strata_coll_kind_t kind, size_t bytes, int ranks);

/* Reads a table: lines "OPERATION RANKS BYTES ALGORITHM", "#" begins a comment; "inter_OPERATION" is between groups.
 * STRATA_ERR_PARAM with the reason in `why`. */
int basic_table_read(const char *path, struct basic_table *t, char *why, size_t why_size);

#endif

/* Two-level map from rank to pointer. The directory grows to the highest group in use, so that a table for a rank space
 * of any size starts empty. */
#include <strata/sdk/rank_table.h>

#include <stdlib.h>
#include <string.h>

int st_rank_table_init(struct st_rank_table *t, uint32_t size)
{
    *t = (struct st_rank_table){.max_dir = size / ST_RANK_LEAF + (size % ST_RANK_LEAF != 0)};
    return STRATA_OK;
}

void st_rank_table_destroy(struct st_rank_table *t)
{
    for (uint32_t i = 0; i < t->n_dir; i++)
        free(t->dir[i]);
    free(t->dir);
    *t = (struct st_rank_table){0};
}

static int rank_table_grow(struct st_rank_table *t, uint32_t d)
{
    uint32_t n = t->n_dir <= t->max_dir / 2 ? t->n_dir * 2 : t->max_dir;
    void ***dir;

    if (n <= d)
        n = d + 1;
    /* Not realloc: a large directory then consists of untouched pages. */
    dir = calloc(n, sizeof(*dir));
    if (!dir)
        return STRATA_ERR_NOMEM;
    if (t->n_dir)
        memcpy(dir, t->dir, t->n_dir * sizeof(*dir));
    free(t->dir);
    t->dir = dir;
    t->n_dir = n;
    return STRATA_OK;
}

int st_rank_table_set(struct st_rank_table *t, uint32_t rank, void *p)
{
    uint32_t d = rank / ST_RANK_LEAF;
    void **leaf;

    if (d >= t->max_dir)
        return STRATA_ERR_RANK;
    if (d >= t->n_dir) {
        if (!p)
            return STRATA_OK;
        if (rank_table_grow(t, d) != STRATA_OK)
            return STRATA_ERR_NOMEM;
    }
    leaf = t->dir[d];
    if (!leaf) {
        if (!p)
            return STRATA_OK;
        leaf = calloc(ST_RANK_LEAF, sizeof(*leaf));
        if (!leaf)
            return STRATA_ERR_NOMEM;
        t->dir[d] = leaf;
        t->n_leaves++;
    }
    leaf[rank % ST_RANK_LEAF] = p;
    return STRATA_OK;
}

size_t st_rank_table_bytes(const struct st_rank_table *t)
{
    return (size_t)t->n_dir * sizeof(*t->dir) + (size_t)t->n_leaves * ST_RANK_LEAF * sizeof(void *);
}

int64_t st_rank_table_next(const struct st_rank_table *t, uint32_t from)
{
    for (uint32_t d = from / ST_RANK_LEAF, i = from % ST_RANK_LEAF; d < t->n_dir; d++, i = 0) {
        if (!t->dir[d])
            continue;
        for (; i < ST_RANK_LEAF; i++)
            if (t->dir[d][i])
                return (int64_t)d * ST_RANK_LEAF + i;
    }
    return -1;
}

/* Two-level map from rank to pointer. The directory is the only thing whose size depends on the world: 8 bytes per 512
 * ranks, untouched pages of it cost nothing (calloc). */
#include <strata/sdk/rank_table.h>

#include <stdlib.h>

int st_rank_table_init(struct st_rank_table *t, uint32_t size)
{
    uint32_t n_dir = size / ST_RANK_LEAF + (size % ST_RANK_LEAF != 0);
    void ***dir = calloc(n_dir ? n_dir : 1, sizeof(*dir));
    if (!dir)
        return STRATA_ERR_NOMEM;
    *t = (struct st_rank_table){.dir = dir, .n_dir = n_dir};
    return STRATA_OK;
}

void st_rank_table_destroy(struct st_rank_table *t)
{
    for (uint32_t i = 0; i < t->n_dir; i++)
        free(t->dir[i]);
    free(t->dir);
    *t = (struct st_rank_table){0};
}

int st_rank_table_set(struct st_rank_table *t, uint32_t rank, void *p)
{
    uint32_t d = rank / ST_RANK_LEAF;
    if (d >= t->n_dir)
        return STRATA_ERR_RANK;
    void **leaf = t->dir[d];
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

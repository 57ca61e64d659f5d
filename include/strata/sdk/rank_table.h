/* Map from rank to pointer that costs nothing for ranks never stored: a directory of 8 bytes per 512 ranks up to the
 * highest in use, and a leaf of 512 pointers for each group with a member in use. Starts in constant time and memory,
 * whatever the size of the rank space. Not thread safe. */
#ifndef STRATA_SDK_RANK_TABLE_H
#define STRATA_SDK_RANK_TABLE_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ranks per leaf. */
#define ST_RANK_LEAF 512u

/* The map; initialise with st_rank_table_init. */
struct st_rank_table {
    void ***dir;       /* n_dir leaves, NULL until used */
    uint32_t n_dir;    /* entries of dir now */
    uint32_t max_dir;  /* and at most */
    uint32_t n_leaves; /* leaves in use */
};

/* Makes an empty map for ranks 0..size-1. Allocates nothing. */
ST_API int st_rank_table_init(struct st_rank_table *t, uint32_t size);
ST_API void st_rank_table_destroy(struct st_rank_table *t); /* the pointers stored are the caller's */
/* Stores p (NULL removes). rank < size. STRATA_ERR_NOMEM when a leaf cannot be had. */
ST_API int st_rank_table_set(struct st_rank_table *t, uint32_t rank, void *p);
/* Memory that the map holds. */
ST_API size_t st_rank_table_bytes(const struct st_rank_table *t);
/* Next rank >= from that has a pointer, or -1. */
ST_API int64_t st_rank_table_next(const struct st_rank_table *t, uint32_t from);

/* What is stored for rank, or NULL. */
static inline void *st_rank_table_get(const struct st_rank_table *t, uint32_t rank)
{
    uint32_t d = rank / ST_RANK_LEAF;
    void **leaf = d < t->n_dir ? t->dir[d] : NULL;
    return leaf ? leaf[rank % ST_RANK_LEAF] : NULL;
}

#ifdef __cplusplus
}
#endif
#endif

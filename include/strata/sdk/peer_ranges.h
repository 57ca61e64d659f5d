/* A set of peers as users write it: numbers and ranges with commas, such as "0,4-7". */
#ifndef STRATA_SDK_PEER_RANGES_H
#define STRATA_SDK_PEER_RANGES_H

#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Peers in a row. */
struct st_peer_range {
    uint32_t first; /* the lowest peer */
    uint32_t last;  /* the highest one, at least `first` */
};

/* Peers of several ranges, which may overlap. */
struct st_peer_ranges {
    struct st_peer_range *range; /* NULL: there are none */
    size_t n;                    /* ranges */
};

/* Reads `text`, of which NULL and "" are the empty set. STRATA_ERR_PARAM: *mistake points to the first invalid
 * character or range. STRATA_ERR_NOMEM: there is no memory. *out is empty after an error. */
ST_API int st_peer_ranges_parse(const char *text, struct st_peer_ranges *out, const char **mistake);
/* Frees what the set holds, and makes it empty. */
ST_API void st_peer_ranges_free(struct st_peer_ranges *set);
/* True if a range contains the peer. Linear in the number of ranges. */
ST_API bool st_peer_ranges_has(const struct st_peer_ranges *set, uint32_t peer);

#ifdef __cplusplus
}
#endif
#endif

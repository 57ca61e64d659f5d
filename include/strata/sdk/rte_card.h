/* A rank's card: everything that it publishes, as one blob. One look-up per rank then does, and tells "not there yet"
 * (no card) from "published no such key" (a card without it). For rte components. */
#ifndef STRATA_SDK_RTE_CARD_H
#define STRATA_SDK_RTE_CARD_H

#include <strata/sdk/component.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest key, bytes. */
#define ST_RTE_KEY_MAX 63

/* The card of this rank: `length` bytes in memory for `room`. Begins as zeros. */
struct st_rte_card {
    unsigned char *bytes;
    size_t length, room;
};

/* Adds or replaces. STRATA_ERR_ARG for a key that is empty or too long, or a blob of 4 GiB or more; STRATA_ERR_NOMEM.
 */
ST_API int st_rte_card_set(struct st_rte_card *card, const char *key, const void *blob, size_t length);
/* Finds `key` in a card that came from another process: every length is checked. STRATA_ERR_NOT_FOUND,
 * STRATA_ERR_PROTOCOL for a malformed card. *blob points into `bytes`. */
ST_API int st_rte_card_find(const void *bytes, size_t n, const char *key, const void **blob, size_t *length);
/* The same, with the blob in a malloc'ed copy that is the caller's; STRATA_ERR_NOMEM besides. */
ST_API int st_rte_card_get(const void *bytes, size_t n, const char *key, void **blob, size_t *length);
/* Frees its memory: it is empty. */
ST_API void st_rte_card_clear(struct st_rte_card *card);

#ifdef __cplusplus
}
#endif
#endif

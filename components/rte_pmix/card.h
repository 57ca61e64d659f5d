/* A rank's card: everything it publishes, as one blob. One PMIx key per rank keeps a look-up one message, and tells
 * "not there yet" (no card) from "published no such key" (card without it). */
#ifndef RTE_PMIX_CARD_H
#define RTE_PMIX_CARD_H

#include <stddef.h>
#include <stdint.h>

#define RTE_PMIX_KEY_MAX 63

struct rte_pmix_card {
    unsigned char *bytes;
    size_t length, room;
};

/* Adds or replaces. STRATA_ERR_ARG for a key that is empty or too long, or a blob of 4 GiB or more. */
int rte_pmix_card_set(struct rte_pmix_card *card, const char *key, const void *blob, size_t length);
/* Finds `key` in a card that came from another process: every length is checked. STRATA_ERR_NOT_FOUND,
 * STRATA_ERR_PROTOCOL for a malformed card. *blob points into `bytes`. */
int rte_pmix_card_find(const void *bytes, size_t n, const char *key, const void **blob, size_t *length);
void rte_pmix_card_clear(struct rte_pmix_card *card);

#endif

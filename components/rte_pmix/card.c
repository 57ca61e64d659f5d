/* Layout of a card: magic (8 bytes, in the writer's byte order), then per entry: key length (1 byte), key, blob length
 * (4 bytes), blob. Nothing is aligned. */
#include "card.h"

#include <stdlib.h>
#include <string.h>
#include <strata/status.h>

static const uint64_t magic = 0x5354434152443031ull;

/* Entry at *at: its parts, and *at moved past it. False when it does not fit into n bytes. */
static int entry_at(const unsigned char *p, size_t n, size_t *at, const unsigned char **key, size_t *key_length,
                    const unsigned char **blob, size_t *length)
{
    size_t pos = *at;
    if (n - pos < 1)
        return 0;
    size_t kl = p[pos++];
    if (kl == 0 || kl > RTE_PMIX_KEY_MAX || n - pos < kl + sizeof(uint32_t))
        return 0;
    uint32_t bl;
    memcpy(&bl, p + pos + kl, sizeof(bl));
    if (n - pos - kl - sizeof(bl) < bl)
        return 0;
    *key = p + pos;
    *key_length = kl;
    *blob = p + pos + kl + sizeof(bl);
    *length = bl;
    *at = pos + kl + sizeof(bl) + bl;
    return 1;
}

int rte_pmix_card_find(const void *bytes, size_t n, const char *key, const void **blob, size_t *length)
{
    const unsigned char *p = bytes;
    uint64_t m;
    if (n < sizeof(m))
        return STRATA_ERR_PROTOCOL;
    memcpy(&m, p, sizeof(m));
    if (m != magic)
        return STRATA_ERR_PROTOCOL;
    size_t wanted = strlen(key);
    for (size_t at = sizeof(m); at < n;) {
        const unsigned char *k, *b;
        size_t kl, bl;
        if (!entry_at(p, n, &at, &k, &kl, &b, &bl))
            return STRATA_ERR_PROTOCOL;
        if (kl == wanted && memcmp(k, key, kl) == 0) {
            *blob = b;
            *length = bl;
            return STRATA_OK;
        }
    }
    return STRATA_ERR_NOT_FOUND;
}

static int card_reserve(struct rte_pmix_card *card, size_t more)
{
    if (card->length + more <= card->room)
        return STRATA_OK;
    size_t room = (card->length + more) * 2;
    unsigned char *p = realloc(card->bytes, room);
    if (!p)
        return STRATA_ERR_NOMEM;
    card->bytes = p;
    card->room = room;
    return STRATA_OK;
}

static void card_drop(struct rte_pmix_card *card, const char *key)
{
    size_t wanted = strlen(key);
    for (size_t at = sizeof(magic); at < card->length;) {
        const unsigned char *k, *b;
        size_t kl, bl, start = at;
        if (!entry_at(card->bytes, card->length, &at, &k, &kl, &b, &bl))
            return;
        if (kl == wanted && memcmp(k, key, kl) == 0) {
            memmove(card->bytes + start, card->bytes + at, card->length - at);
            card->length -= at - start;
            return;
        }
    }
}

int rte_pmix_card_set(struct rte_pmix_card *card, const char *key, const void *blob, size_t length)
{
    size_t kl = strlen(key);
    if (kl == 0 || kl > RTE_PMIX_KEY_MAX || length > UINT32_MAX)
        return STRATA_ERR_ARG;
    int rc = card_reserve(card, sizeof(magic) + 1 + kl + sizeof(uint32_t) + length);
    if (rc != STRATA_OK)
        return rc;
    if (card->length == 0) {
        memcpy(card->bytes, &magic, sizeof(magic));
        card->length = sizeof(magic);
    } else {
        card_drop(card, key);
    }
    unsigned char *p = card->bytes + card->length;
    uint32_t bl = (uint32_t)length;
    *p++ = (unsigned char)kl;
    memcpy(p, key, kl);
    memcpy(p + kl, &bl, sizeof(bl));
    if (length)
        memcpy(p + kl + sizeof(bl), blob, length);
    card->length += 1 + kl + sizeof(bl) + length;
    return STRATA_OK;
}

void rte_pmix_card_clear(struct rte_pmix_card *card)
{
    free(card->bytes);
    *card = (struct rte_pmix_card){NULL, 0, 0};
}

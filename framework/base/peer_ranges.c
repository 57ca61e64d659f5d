/* Sets of peers, written as numbers and ranges. */
#include <stdlib.h>

#include <strata/sdk/peer_ranges.h>

/* A number; *at moves behind it. */
static bool peer_ranges_number(const char **at, uint32_t *out)
{
    uint64_t value = 0;
    const char *c = *at;

    for (; *c >= '0' && *c <= '9' && value <= UINT32_MAX; c++)
        value = value * 10 + (uint64_t)(*c - '0');
    if (c == *at || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    *at = c;
    return true;
}

/* A number, or two with a hyphen; *at moves behind them. */
static bool peer_ranges_one(const char **at, struct st_peer_range *out)
{
    if (!peer_ranges_number(at, &out->first))
        return false;
    out->last = out->first;
    if (**at != '-')
        return true;
    const char *second = *at + 1;
    if (!peer_ranges_number(&second, &out->last) || out->last < out->first)
        return false;
    *at = second;
    return true;
}

int st_peer_ranges_parse(const char *text, struct st_peer_ranges *out, const char **mistake)
{
    size_t most = 1;

    *out = (struct st_peer_ranges){0};
    if (!text || !*text)
        return STRATA_OK;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    out->range = calloc(most, sizeof(*out->range));
    if (!out->range)
        return STRATA_ERR_NOMEM;
    for (const char *at = text;; at++) {
        *mistake = at;
        if (!peer_ranges_one(&at, &out->range[out->n]))
            break;
        out->n++;
        if (!*at)
            return STRATA_OK;
        *mistake = at;
        if (*at != ',')
            break;
    }
    st_peer_ranges_free(out);
    return STRATA_ERR_PARAM;
}

void st_peer_ranges_free(struct st_peer_ranges *set)
{
    free(set->range);
    *set = (struct st_peer_ranges){0};
}

bool st_peer_ranges_has(const struct st_peer_ranges *set, uint32_t peer)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->range[i].first <= peer && peer <= set->range[i].last)
            return true;
    return false;
}

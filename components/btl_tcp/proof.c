/* The proofs of the handshake. */
#include "proof.h"

#include <string.h>
#include <strata/sdk/hmac.h>

void tcp_prove(const uint8_t key[TCP_KEY], bool dialler, const struct tcp_said *said, uint8_t out[TCP_PROOF])
{
    struct {
        char side[16];
        struct tcp_said said;
    } all = {"", *said};

    static_assert(sizeof all == 16 + 7 * 4 + 2 * TCP_NONCE, "no holes: all of it is proved");
    memcpy(all.side, dialler ? "strata dialler" : "strata listener", dialler ? 14 : 15);
    st_hmac(key, TCP_KEY, &all, sizeof all, out);
}

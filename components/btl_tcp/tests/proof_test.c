/* HMAC-SHA-256 by the vectors of RFC 4231; proofs are of one side and one handshake. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <strata/sdk/hmac.h>
#include "proof.h"
#include "support/run_suite.h"

static void vector(const void *key, size_t key_n, const void *data, size_t n, const char *expected)
{
    uint8_t out[32];
    char text[65];

    st_hmac(key, key_n, data, n, out);
    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", out[i]);
    ck_assert_str_eq(text, expected);
}

START_TEST(vectors)
{
    uint8_t key[64], data[50];

    memset(key, 0x0b, 20);
    vector(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    vector("Jefe", 4, "what do ya want for nothing?", 28,
           "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 20);
    memset(data, 0xdd, 50);
    vector(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (int i = 0; i < 25; i++)
        key[i] = (uint8_t)(i + 1);
    memset(data, 0xcd, 50);
    vector(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}
END_TEST

/* Any other byte of what is proved gives another proof. */
START_TEST(each_byte_counts)
{
    uint8_t key[TCP_KEY] = {1, 2, 3}, proof[TCP_PROOF], other[TCP_PROOF];
    struct tcp_said said;

    memset(&said, 0x35, sizeof said);
    tcp_prove(key, true, &said, proof);
    ck_assert(st_hmac_same(proof, proof, TCP_PROOF));
    tcp_prove(key, false, &said, other);
    ck_assert(!st_hmac_same(proof, other, TCP_PROOF));
    for (size_t i = 0; i < sizeof said; i++) {
        ((uint8_t *)&said)[i] ^= 1;
        tcp_prove(key, true, &said, other);
        ck_assert(!st_hmac_same(proof, other, TCP_PROOF));
        ((uint8_t *)&said)[i] ^= 1;
    }
    key[31] ^= 0x80;
    tcp_prove(key, true, &said, other);
    ck_assert(!st_hmac_same(proof, other, TCP_PROOF));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp proof");
    TCase *tc = tcase_create("proof");

    tcase_add_test(tc, vectors);
    tcase_add_test(tc, each_byte_counts);
    suite_add_tcase(s, tc);
    return run_suite(s);
}

/* HMAC-SHA-256. A library for it would cost every idle process its pages. */
#include <strata/sdk/hmac.h>

#include <string.h>

struct sha {
    uint32_t h[8];
    uint64_t n; /* bytes so far */
    uint8_t block[64];
};

static const uint32_t sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t sha_turn(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void sha_mix(struct sha *s)
{
    uint32_t w[64], v[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
               (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = sha_turn(w[i - 15], 7) ^ sha_turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = sha_turn(w[i - 2], 17) ^ sha_turn(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t t =
            v[7] + (sha_turn(e, 6) ^ sha_turn(e, 11) ^ sha_turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + sha_k[i] + w[i];
        uint32_t u = (sha_turn(a, 2) ^ sha_turn(a, 13) ^ sha_turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t;
        v[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

static void sha_begin(struct sha *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof start);
    s->n = 0;
}

static void sha_add(struct sha *s, const void *data, size_t n)
{
    const uint8_t *p = data;

    while (n-- > 0) {
        s->block[s->n++ % 64] = *p++;
        if (s->n % 64 == 0)
            sha_mix(s);
    }
}

static void sha_end(struct sha *s, uint8_t out[32])
{
    uint64_t bits = s->n * 8;
    uint8_t byte = 0x80;

    do {
        sha_add(s, &byte, 1);
        byte = 0;
    } while (s->n % 64 != 56);
    for (int i = 56; i >= 0; i -= 8) {
        byte = (uint8_t)(bits >> i);
        sha_add(s, &byte, 1);
    }
    for (int i = 0; i < 32; i++)
        out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void st_hmac(const void *key, size_t key_n, const void *data, size_t n, uint8_t out[32])
{
    struct sha s;
    uint8_t inner[64] = {0}, outer[64];

    memcpy(inner, key, key_n < sizeof inner ? key_n : sizeof inner);
    for (int i = 0; i < 64; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha_begin(&s);
    sha_add(&s, inner, sizeof inner);
    sha_add(&s, data, n);
    sha_end(&s, out);
    sha_begin(&s);
    sha_add(&s, outer, sizeof outer);
    sha_add(&s, out, 32);
    sha_end(&s, out);
}

bool st_hmac_same(const uint8_t *a, const uint8_t *b, size_t n)
{
    unsigned differ = 0;

    for (size_t i = 0; i < n; i++)
        differ |= a[i] ^ b[i];
    return differ == 0;
}

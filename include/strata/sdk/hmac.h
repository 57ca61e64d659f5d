/* Codes that prove that a process knows a key: HMAC-SHA-256 (RFC 2104, FIPS 180-4). */
#ifndef STRATA_SDK_HMAC_H
#define STRATA_SDK_HMAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <strata/sdk/component.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a code: SHA-256 has so many. */
#define ST_HMAC_SIZE 32

/* The code of `n` bytes under a key of at most 64 bytes. */
ST_API void st_hmac(const void *key, size_t key_n, const void *data, size_t n, uint8_t out[ST_HMAC_SIZE]);
/* Whether two codes are the same, in a time that does not depend on where they differ. */
ST_API bool st_hmac_same(const uint8_t *a, const uint8_t *b, size_t n);

#ifdef __cplusplus
}
#endif
#endif

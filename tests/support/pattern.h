/* Payloads that say where they come from: byte i of pattern `seed` depends on both, so that lost, doubled, swapped or
 * shifted bytes show. */
#ifndef TEST_SUPPORT_PATTERN_H
#define TEST_SUPPORT_PATTERN_H

#include <stddef.h>
#include <stdint.h>

void pattern_fill(void *buf, size_t len, uint64_t seed);
/* As if it were the stream's bytes offset .. offset + len. */
void pattern_fill_at(void *buf, size_t offset, size_t len, uint64_t seed);
/* Offset of the first wrong byte, or -1. */
ptrdiff_t pattern_check(const void *buf, size_t len, uint64_t seed);
ptrdiff_t pattern_check_at(const void *buf, size_t offset, size_t len, uint64_t seed);
/* Guard bytes around a buffer: set before, checked after; any change is an overrun. */
#define PATTERN_GUARD 64
void pattern_guard_set(void *p);
int pattern_guard_ok(const void *p);

#endif

/* Doing elsewhere what an aarch64 instruction does where it is. */
#ifndef MEMORY_INTERCEPT_MOVE_AARCH64_H
#define MEMORY_INTERCEPT_MOVE_AARCH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOVED_MOST = 6 };

struct moved {
    uint32_t code[MOVED_MOST];
    size_t n;
};

/* Instructions that, at `to`, have the effect which the one at `at` has there; when it goes on to the next one, so do
 * they. They change nothing that it does not change. NULL; or why there are none. */
const char *move_instruction(struct moved *out, uintptr_t at, uintptr_t to);

/* b: from one address to another, both multiples of 4. */
bool branch_reaches(uintptr_t from, uintptr_t to);
uint32_t branch(uintptr_t from, uintptr_t to);

#endif

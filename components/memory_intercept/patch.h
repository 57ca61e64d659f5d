/* Between patch.c, which is common to all processors, and patch_PROCESSOR.c. */
#ifndef MEMORY_INTERCEPT_PATCH_H
#define MEMORY_INTERCEPT_PATCH_H

#include "intercept.h"

/* Not with the thread sanitizer, which keeps notes on each access that this library makes, and has no room for notes on
 * code. */
#if (defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__))) && !defined(__SANITIZE_THREAD__)
#define INTERCEPT_CHANGES_CODE 1
#endif

struct patch_processor {
    size_t room;     /* bytes for the piece of code that is made for each entry; a multiple of 16 */
    uintptr_t reach; /* how far a jump goes */
    uintptr_t step;  /* at which distances memory is looked for; a place may be larger than it by nothing */
};
extern const struct patch_processor patch_processor;

/* Plans entries[i], those before it being planned: writes the piece of code that will run in front of it to `piece`, of
 * patch_processor.room bytes, and sets word, new_word and whatever else patch_write needs. False: why not. */
bool patch_plan(struct intercept_entry *entries, size_t i, uint8_t *piece, char *why, size_t why_size);
/* Code has been written there that nobody has run yet. */
void patch_written(uint8_t *at, size_t bytes);
/* Changes the code, which is writable. Threads may be running it. */
void patch_write(const struct intercept_entry *e);
/* Returns when every thread of the process runs the code as it is now. */
void patch_everywhere(void);

#endif

/* memory "intercept": the C library's own code for munmap, mmap and the like is changed so that it tells us first. */
#ifndef MEMORY_INTERCEPT_INTERCEPT_H
#define MEMORY_INTERCEPT_INTERCEPT_H

#include <strata/sdk/memory_code.h>

/* Called with the registers of the six first arguments of the call that it precedes; what it changes is restored. It
 * runs inside malloc, free, dlclose and signal handlers. */
typedef void (*intercept_fn)(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f);

/* A function whose code is changed. */
struct intercept_entry {
    const char *name;
    intercept_fn fn;
    enum st_memory_event event; /* that it is needed for */
    bool optional;              /* there need not be such a function */
    uint8_t *at;                /* find: its code, or NULL */
    /* plan: one aligned word of the code, and what it will be; where in it, when only a part is stored; and, or NULL,
     * unused bytes nearby for a long jump */
    _Atomic(uint64_t) *word;
    uint64_t new_word;
    uint8_t *site;
    uint8_t *pad, pad_code[5];
};

/* ---- handlers.c: what each call makes go away -------------------------------------------------------------------- */

extern struct intercept_entry intercept_entries[];
extern const size_t intercept_n_entries;

/* ---- change.c -----------------------------------------------------------------------------------------------------
 */

/* Changes the code of each entry that is not changed now, in front of what others made of it. Threads may be running
 * it. STRATA_OK, or why not in `why`. Called by one thread at a time. */
int intercept_change(struct intercept_entry *entries, size_t n, char *why, size_t why_size);
/* Whether the code is as it was left. */
bool intercept_ours(const struct intercept_entry *e);
/* The same of each that there is. */
bool intercept_all_ours(const struct intercept_entry *entries, size_t n);

/* ---- segments.c -------------------------------------------------------------------------------------------------- */

/* Reports what shmdt(at) would unmap. */
void intercept_report_segment(uintptr_t at);

/* ---- find.c -------------------------------------------------------------------------------------------------------
 */

/* Sets `at` of every entry. False: one that is needed does not exist; its name in *missing. */
bool intercept_find(struct intercept_entry *entries, size_t n, const char **missing);

/* ---- patch.c, and patch_none.c where code is not changed ----------------------------------------------------------
 */

/* Works out how to change each entry's code that is not changed already, without changing anything. STRATA_OK, or why
 * not in `why`. */
int intercept_plan(struct intercept_entry *entries, size_t n, char *why, size_t why_size);
/* Changes the code. Threads may be running it. */
int intercept_patch(struct intercept_entry *entries, size_t n, char *why, size_t why_size);

#endif

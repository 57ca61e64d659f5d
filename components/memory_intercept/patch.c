/* Changing the code of functions while threads may be running it: what is the same on every processor. How an
 * instruction is read, moved and replaced is in patch_PROCESSOR.c. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <strata/sdk/process_memory.h>

#include "patch.h"

#if defined(INTERCEPT_CHANGES_CODE)

/* More pieces of memory than there can be places that are far from each other: the C library and the loader. */
enum { MOST_PLACES = 4 };

struct places {
    uint8_t *at[MOST_PLACES];
    unsigned n;
    size_t bytes; /* of each */
};

static uint8_t *patch_map_at(uintptr_t wish, size_t bytes)
{
    void *p =
        mmap((void *)wish, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == (void *)wish)
        return p;
    if (p != MAP_FAILED) /* a kernel that takes the address for a wish */
        munmap(p, bytes);
    return NULL;
}

/* Memory that a jump from `near` reaches: below it; or, for a program at low addresses that is linked statically, as
 * far above as possible, to leave room for its heap. */
static uint8_t *patch_place_near(const uint8_t *near, size_t bytes)
{
    const uintptr_t step = patch_processor.step, least = 2 * step, most = patch_processor.reach - step;
    uintptr_t at = (uintptr_t)near & ~(uintptr_t)0xfffff;
    uint8_t *p = NULL;
    for (uintptr_t far = least; far < most && far + least < at && !p; far += step)
        p = patch_map_at(at - far, bytes);
    for (uintptr_t far = most; far > least && !p; far -= step)
        p = patch_map_at(at + far, bytes);
    return p;
}

/* Where the piece of entry i goes: in a place that its code reaches already, or in a new one. */
static uint8_t *patch_piece_for(struct places *places, const struct intercept_entry *e, size_t i)
{
    for (unsigned k = 0; k < places->n; k++) {
        uintptr_t at = (uintptr_t)places->at[k], code = (uintptr_t)e->at;
        if ((at > code ? at - code : code - at) < patch_processor.reach - patch_processor.step / 2)
            return places->at[k] + i * patch_processor.room;
    }
    uint8_t *p = places->n < MOST_PLACES ? patch_place_near(e->at, places->bytes) : NULL;
    if (!p)
        return NULL;
    places->at[places->n++] = p;
    return p + i * patch_processor.room;
}

static bool patch_plan_one(struct places *places, struct intercept_entry *entries, size_t i, char *why, size_t why_size)
{
    uint8_t *piece = patch_piece_for(places, &entries[i], i);
    if (piece)
        return patch_plan(entries, i, piece, why, why_size);
    snprintf(why, why_size, "no memory is free near the code of %s", entries[i].name);
    return false;
}

int intercept_plan(struct intercept_entry *entries, size_t n, char *why, size_t why_size)
{
    size_t page = st_page_size();
    struct places places = {.bytes = (n * patch_processor.room + page - 1) & ~(page - 1)};
    for (size_t i = 0; i < n; i++)
        if (entries[i].at && !intercept_ours(&entries[i]) && !patch_plan_one(&places, entries, i, why, why_size)) {
            if (!entries[i].optional)
                goto unmap;
            entries[i].at = NULL;
        }
    for (unsigned k = 0; k < places.n; k++) {
        patch_written(places.at[k], places.bytes);
        if (mprotect(places.at[k], places.bytes, PROT_READ | PROT_EXEC) != 0) {
            snprintf(why, why_size, "this process may not make code (mprotect: %m)");
            goto unmap;
        }
    }
    return STRATA_OK;
unmap:
    for (unsigned k = 0; k < places.n; k++)
        munmap(places.at[k], places.bytes);
    return STRATA_ERR_UNSUPPORTED;
}

/* Threads may run this code meanwhile: it stays executable. */
static bool patch_writable(const uint8_t *from, const uint8_t *to, bool on)
{
    uintptr_t page = st_page_size(), a = (uintptr_t)from & ~(page - 1);
    uintptr_t b = ((uintptr_t)to + page - 1) & ~(page - 1);
    return mprotect((void *)a, b - a, PROT_READ | PROT_EXEC | (on ? PROT_WRITE : 0)) == 0;
}

int intercept_patch(struct intercept_entry *entries, size_t n, char *why, size_t why_size)
{
    for (size_t i = 0; i < n; i++) {
        struct intercept_entry *e = &entries[i];
        if (!e->at || intercept_ours(e))
            continue;
        const uint8_t *from = (const uint8_t *)e->word, *to = from + sizeof(*e->word);
        if (e->pad && e->pad < from)
            from = e->pad;
        if (e->pad && e->pad + sizeof(e->pad_code) > to)
            to = e->pad + sizeof(e->pad_code);
        if (!patch_writable(from, to, true)) {
            snprintf(why, why_size, "this process may not change its code (mprotect: %m)");
            return STRATA_ERR_UNSUPPORTED;
        }
        patch_write(e);
        (void)patch_writable(from, to, false);
    }
    patch_everywhere();
    return STRATA_OK;
}

#endif

/* Changing a function's code on x86-64 while threads may be running it.
 *
 * Only the first instruction is replaced, by a jump, with one aligned store of 8 bytes: a processor fetches either the
 * old word or the new one, and no thread can be stopped in the middle of an instruction. A jump of 5 bytes when the
 * instruction is as long and lies within one word; else one of 2 bytes, to unused bytes between two functions, where
 * the long one is. It leads to a piece of our own code nearby that keeps the arguments, calls the handler, does what
 * the replaced instruction did, and goes on behind it. So whatever else the function does stays as it is, errno and
 * all; and a function that another library has changed already goes on to that library's code. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "patch.h"

#if defined(INTERCEPT_CHANGES_CODE) && defined(__x86_64__)

enum { LONG_JUMP = 5, SHORT_JUMP = 2, WORD = 8 };

const struct patch_processor patch_processor = {
    .room = 128, .reach = (uintptr_t)2048 << 20, .step = (uintptr_t)8 << 20};

/* ---- reading code ----------------------------------------------------------------------------------------------- */

struct instruction {
    unsigned length; /* 0: not one of those that may be moved */
    bool jump;       /* with a distance: to `to` */
    uintptr_t to;
};

/* Bytes of the operand byte and what follows it; 0 when it counts from where the instruction is. */
static unsigned patch_operand_length(const uint8_t *p)
{
    unsigned mod = p[0] >> 6, rm = p[0] & 7;
    if (mod == 3)
        return 1;
    if (mod == 0 && rm == 5)
        return 0;
    unsigned n = 1 + (rm == 4);
    if (mod == 0 && rm == 4 && (p[1] & 7) == 5)
        return n + 4;
    return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* The instructions with which the C library's calls, and other libraries' jumps, begin. */
static struct instruction patch_read_instruction(const uint8_t *p)
{
    struct instruction in = {0};
    unsigned rex = (p[0] & 0xf0) == 0x40, n;
    const uint8_t *op = p + rex;
    int32_t far;
    if (*op >= 0xb8 && *op <= 0xbf) { /* mov constant,register */
        in.length = rex && (p[0] & 8) ? 10 : rex + 5;
    } else if (*op >= 0x50 && *op <= 0x57) { /* push */
        in.length = rex + 1;
    } else if (*op == 0x89 || *op == 0x8b || *op == 0x31 || *op == 0x33 || *op == 0x85) { /* mov, xor, test */
        n = patch_operand_length(op + 1);
        in.length = n ? rex + 1 + n : 0;
    } else if (*op == 0x83) { /* sub, cmp and the like with a small constant */
        n = patch_operand_length(op + 1);
        in.length = n ? rex + 1 + n + 1 : 0;
    } else if (*op == 0x81 || *op == 0xc7 || (*op == 0xf7 && (op[1] & 0x38) == 0)) { /* with a large one */
        n = patch_operand_length(op + 1);
        in.length = n ? rex + 1 + n + 4 : 0;
    } else if (p[0] == 0xe9) {
        memcpy(&far, p + 1, 4);
        in = (struct instruction){.length = 5, .jump = true, .to = (uintptr_t)p + 5 + (uintptr_t)(intptr_t)far};
    } else if (p[0] == 0xeb) {
        in =
            (struct instruction){.length = 2, .jump = true, .to = (uintptr_t)p + 2 + (uintptr_t)(intptr_t)(int8_t)p[1]};
    }
    return in;
}

/* Length of an instruction that does nothing, as assemblers put between functions; 0: it is another one. */
static unsigned patch_nop_length(const uint8_t *p)
{
    const uint8_t *q = p;
    while (*q == 0x66 && q - p < 9)
        q++;
    if (*q == 0x2e)
        q++;
    if (*q == 0x90)
        return (unsigned)(q - p) + 1;
    if (q[0] != 0x0f || q[1] != 0x1f || (q[2] & 0x38) != 0)
        return 0;
    unsigned n = patch_operand_length(q + 2);
    return n ? (unsigned)(q - p) + 2 + n : 0;
}

/* Unused bytes for a long jump that a short one at `at` reaches: behind a return, and up to where the next function is
 * aligned, so that no path leads through them; none that one of the n entries is going to use. NULL: there are none. */
static uint8_t *patch_find_pad(uint8_t *at, const struct intercept_entry *entries, size_t n)
{
    for (uint8_t *p = at + SHORT_JUMP - 127; p < at + SHORT_JUMP + 127; p++) {
        if (p[-1] != 0xc3 || (p <= at && p + LONG_JUMP > at))
            continue;
        uint8_t *end = p;
        for (unsigned k; (uintptr_t)end % 16 != 0 && (k = patch_nop_length(end)) != 0;)
            end += k;
        bool free = (uintptr_t)end % 16 == 0 && end - p >= LONG_JUMP;
        for (size_t i = 0; i < n && free; i++)
            free = !entries[i].at || entries[i].pad != p;
        if (free)
            return p;
    }
    return NULL;
}

/* ---- writing code ----------------------------------------------------------------------------------------------- */

static uint8_t *patch_put(uint8_t *p, const void *bytes, size_t n)
{
    memcpy(p, bytes, n);
    return p + n;
}

static bool patch_reaches(const uint8_t *from, uintptr_t to)
{
    intptr_t far = (intptr_t)(to - ((uintptr_t)from + LONG_JUMP));
    return far >= INT32_MIN && far <= INT32_MAX;
}

/* The jump at `from`, written at p. */
static void patch_long_jump(uint8_t *p, const uint8_t *from, uintptr_t to)
{
    int32_t far = (int32_t)(intptr_t)(to - ((uintptr_t)from + LONG_JUMP));
    p[0] = 0xe9;
    memcpy(p + 1, &far, 4);
}

/* At p: keep the arguments, call fn, do the replaced instruction, go on. False: the code is too far away. */
static bool patch_write_piece(uint8_t *p, intercept_fn fn, const uint8_t *code, const struct instruction *in)
{
    /* push rdi, rsi, rdx, rcx, r8, r9, rax: the stack is aligned again; movabs rax */
    static const uint8_t keep[] = {0x57, 0x56, 0x52, 0x51, 0x41, 0x50, 0x41, 0x51, 0x50, 0x48, 0xb8};
    /* call rax; and back */
    static const uint8_t restore[] = {0xff, 0xd0, 0x58, 0x41, 0x59, 0x41, 0x58, 0x59, 0x5a, 0x5e, 0x5f};
    p = patch_put(p, keep, sizeof(keep));
    p = patch_put(p, &fn, sizeof(fn));
    p = patch_put(p, restore, sizeof(restore));
    if (!in->jump)
        p = patch_put(p, code, in->length);
    uintptr_t on = in->jump ? in->to : (uintptr_t)code + in->length;
    if (patch_reaches(p, on)) {
        patch_long_jump(p, p, on);
        return true;
    }
    static const uint8_t through[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
    p = patch_put(p, through, sizeof(through));
    patch_put(p, &on, sizeof(on));
    return in->jump; /* what we replaced is in reach, or the page was misplaced */
}

static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

bool patch_plan(struct intercept_entry *entries, size_t i, uint8_t *piece, char *why, size_t why_size)
{
    struct intercept_entry *e = &entries[i];
    uint8_t *code = e->at + (memcmp(e->at, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0);
    struct instruction in = patch_read_instruction(code);
    uint8_t bytes[WORD], *word = (uint8_t *)((uintptr_t)code & ~(uintptr_t)(WORD - 1));
    unsigned at = (unsigned)(code - word);
    if (in.length < SHORT_JUMP || at + SHORT_JUMP > WORD) {
        snprintf(why, why_size, "%s begins with an instruction that this version does not know (%02x %02x %02x)",
                 e->name, code[0], code[1], code[2]);
        return false;
    }
    memcpy(bytes, word, WORD);
    if (!patch_write_piece(piece, e->fn, code, &in) || !patch_reaches(code, (uintptr_t)piece)) {
        snprintf(why, why_size, "no memory is free near the code of %s", e->name);
        return false;
    }
    e->pad = NULL;
    if (in.length >= LONG_JUMP && at + LONG_JUMP <= WORD) {
        patch_long_jump(bytes + at, code, (uintptr_t)piece);
    } else {
        if (!(e->pad = patch_find_pad(code, entries, i))) {
            snprintf(why, why_size, "there is no room for a jump near the code of %s", e->name);
            return false;
        }
        patch_long_jump(e->pad_code, e->pad, (uintptr_t)piece);
        bytes[at] = 0xeb;
        bytes[at + 1] = (uint8_t)(e->pad - (code + SHORT_JUMP));
    }
    e->word = (_Atomic(uint64_t) *)(void *)word;
    memcpy(&e->new_word, bytes, WORD);
    return true;
}

/* Caches of instructions see what is stored. */
void patch_written(uint8_t *at, size_t bytes)
{
    (void)at, (void)bytes;
}

void patch_write(const struct intercept_entry *e)
{
    if (e->pad) /* nobody comes here before the word below is written */
        memcpy(e->pad, e->pad_code, LONG_JUMP);
    atomic_store(e->word, e->new_word);
}

void patch_everywhere(void) {}

#endif

/* Changing a function's code on aarch64 while threads may be running it.
 *
 * Only the first instruction is replaced, by a branch, with one aligned store of 4 bytes, which is how processors fetch
 * instructions. A landing pad stays: behind a guarded page's `bti` or `paciasp` comes the first. The branch leads to a
 * piece of our own code nearby that keeps the registers in which arguments are passed, calls the handler, does what the
 * replaced instruction did (move_aarch64.c), and goes on behind it. So whatever else the function does stays as it is,
 * errno and all; and a function that another library has changed already goes on to that library's code. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "move_aarch64.h"
#include "patch.h"

#if defined(INTERCEPT_CHANGES_CODE) && defined(__aarch64__)

enum { WORD = 8, ROOM = 256 };

/* A branch reaches 128 MiB; the place that it goes to has a size, too. */
const struct patch_processor patch_processor = {
    .room = ROOM, .reach = (uintptr_t)127 << 20, .step = (uintptr_t)2 << 20};

/* What of Linux's membarrier is needed; headers may be older. */
enum { SYNC_CORE = 1 << 5, REGISTER_SYNC_CORE = 1 << 6 };

/* ---- a piece of code --------------------------------------------------------------------------------------------- */

/* The frame: x29 and x30, which make it a frame for those who walk the stack; x0 to x8; q0 to q7. Whatever else a
 * function may change is dead where it begins, by the procedure call standard. */
enum { FRAME_X = 16, FRAME_Q = 96, FRAME = 96 + 8 * 16 };

enum { SP = 31, X16 = 16, X29 = 29, X30 = 30 };

enum {
    STP_X = 0xa9000000u,
    LDP_X = 0xa9400000u,
    STR_X = 0xf9000000u,
    LDR_X = 0xf9400000u,
    STP_Q = 0xad000000u,
    LDP_Q = 0xad400000u,
    SUB_SP = 0xd10003ffu,
    ADD_SP = 0x910003ffu,
    MOV_X29_SP = 0x910003fdu,
    LDR_LITERAL = 0x58000000u,
    BLR_X16 = 0xd63f0200u
};

static uint32_t patch_pair(uint32_t op, unsigned a, unsigned b, unsigned at, unsigned unit)
{
    return op | (at / unit) << 15 | b << 10 | SP << 5 | a;
}

/* All that is kept: stored or loaded. */
static uint32_t *patch_registers(uint32_t *p, bool load)
{
    for (unsigned i = 0; i < 8; i += 2)
        *p++ = patch_pair(load ? LDP_X : STP_X, i, i + 1, FRAME_X + 8 * i, 8);
    *p++ = (load ? LDR_X : STR_X) | (FRAME_X + 64) / 8 << 10 | SP << 5 | 8;
    for (unsigned i = 0; i < 8; i += 2)
        *p++ = patch_pair(load ? LDP_Q : STP_Q, i, i + 1, FRAME_Q + 16 * i, 16);
    return p;
}

/* Calls fn, moves the instruction at `code` behind that, goes on behind it. NULL, or why that cannot be. */
static const char *patch_write_piece(uint8_t *piece, intercept_fn fn, const uint8_t *code)
{
    uint8_t *literal = piece + ROOM - sizeof(fn);
    uint32_t *begin = (uint32_t *)(void *)piece, *p = begin;
    memcpy(literal, &fn, sizeof(fn));
    *p++ = SUB_SP | FRAME << 10;
    *p++ = patch_pair(STP_X, X29, X30, 0, 8);
    *p++ = MOV_X29_SP;
    p = patch_registers(p, false);
    *p = LDR_LITERAL | (uint32_t)((literal - (uint8_t *)p) / 4) << 5 | X16;
    p++;
    *p++ = BLR_X16;
    p = patch_registers(p, true);
    *p++ = patch_pair(LDP_X, X29, X30, 0, 8);
    *p++ = ADD_SP | FRAME << 10;

    struct moved moved;
    const char *why = move_instruction(&moved, (uintptr_t)code, (uintptr_t)p);
    if (why)
        return why;
    memcpy(p, moved.code, moved.n * sizeof(*p));
    p += moved.n;
    if (!branch_reaches((uintptr_t)p, (uintptr_t)code + 4))
        return "it is too far away";
    *p = branch((uintptr_t)p, (uintptr_t)code + 4);
    return NULL;
}
_Static_assert(ROOM >= 4 * (3 + 9 + 2 + 9 + 2 + MOVED_MOST + 1) + sizeof(intercept_fn), "a piece has room");

/* ---- planning and writing ---------------------------------------------------------------------------------------- */

/* Where indirect branches may land: bti of any kind, and the two that sign the return address, which are landing pads
 * as well. Each must stay what a guarded function begins with; to sign twice would be wrong, too. */
static bool patch_landing_pad(uint32_t in)
{
    return (in & 0xffffff3fu) == 0xd503241fu || in == 0xd503233fu || in == 0xd503237fu;
}

static uint32_t patch_instruction_at(const uint8_t *at)
{
    uint32_t in;
    memcpy(&in, at, sizeof(in));
    return in;
}

bool patch_plan(struct intercept_entry *entries, size_t i, uint8_t *piece, char *why, size_t why_size)
{
    struct intercept_entry *e = &entries[i];
    uint8_t *code = e->at, *word;
    if ((uintptr_t)code % 4 != 0) {
        snprintf(why, why_size, "%s is not where code can be", e->name);
        return false;
    }
    while (patch_landing_pad(patch_instruction_at(code)))
        code += 4;
    const char *reason = patch_write_piece(piece, e->fn, code);
    if (!reason && !branch_reaches((uintptr_t)code, (uintptr_t)piece))
        reason = "it is too far away";
    if (reason) {
        snprintf(why, why_size, "the code of %s cannot be changed: %s (%08x)", e->name, reason,
                 patch_instruction_at(code));
        return false;
    }
    /* The word in which the instruction is, as others look at it: the other half stays. */
    uint32_t jump = branch((uintptr_t)code, (uintptr_t)piece);
    word = (uint8_t *)((uintptr_t)code & ~(uintptr_t)(WORD - 1));
    memcpy(&e->new_word, word, WORD);
    memcpy((uint8_t *)&e->new_word + (code - word), &jump, sizeof(jump));
    e->word = (_Atomic(uint64_t) *)(void *)word;
    e->site = code;
    return true;
}

void patch_written(uint8_t *at, size_t bytes)
{
    __builtin___clear_cache((char *)at, (char *)at + bytes);
}

/* The piece was made visible to all processors before (patch_written waits for that): whoever takes the branch finds
 * it. */
void patch_write(const struct intercept_entry *e)
{
    size_t at = (size_t)(e->site - (const uint8_t *)e->word);
    uint32_t jump;
    memcpy(&jump, (const uint8_t *)&e->new_word + at, sizeof(jump));
    atomic_store((_Atomic(uint32_t) *)(void *)e->site, jump);
    patch_written(e->site, sizeof(jump));
}

/* A processor may have fetched the old instruction before and not done it yet, so each one that runs this process is
 * made to fetch anew. Where the kernel cannot (before 4.16) it will have happened at the next return from the kernel.
 */
void patch_everywhere(void)
{
    if (syscall(SYS_membarrier, REGISTER_SYNC_CORE, 0, 0) == 0)
        (void)syscall(SYS_membarrier, SYNC_CORE, 0, 0);
}

#endif

/* Doing elsewhere what an aarch64 instruction does where it is: most may be copied; those that count from their own
 * address are written anew. (Arm Architecture Reference Manual for A-profile, C4.1: how instructions are encoded.) */
#include "move_aarch64.h"

#include <string.h>

#if defined(__aarch64__)

enum { BRANCH_RANGE = 1 << 27 };

bool branch_reaches(uintptr_t from, uintptr_t to)
{
    intptr_t far = (intptr_t)(to - from);
    return far >= -BRANCH_RANGE && far < BRANCH_RANGE;
}

uint32_t branch(uintptr_t from, uintptr_t to)
{
    return 0x14000000u | (uint32_t)((to - from) >> 2 & 0x3ffffff);
}

/* The field of `bits` bits that begins at bit `low`, as a number with a sign. */
static intptr_t move_field(uint32_t in, unsigned low, unsigned bits)
{
    return (intptr_t)((uint64_t)in << (64 - low - bits)) >> (64 - bits);
}

static void move_put(struct moved *out, uint32_t in)
{
    out->code[out->n++] = in;
}

/* A constant into a register: movz, and movk for each other 16 bits. */
static void move_put_constant(struct moved *out, unsigned reg, uint64_t value)
{
    move_put(out, 0xd2800000u | (uint32_t)(value & 0xffff) << 5 | reg);
    for (unsigned k = 1; k < 4; k++)
        if (value >> 16 * k & 0xffff)
            move_put(out, 0xf2800000u | k << 21 | (uint32_t)(value >> 16 * k & 0xffff) << 5 | reg);
}

static const char *move_put_branch(struct moved *out, uintptr_t to, uintptr_t target)
{
    uintptr_t from = to + 4 * out->n;
    if (!branch_reaches(from, target))
        return "it branches too far";
    move_put(out, branch(from, target));
    return NULL;
}

/* The condition leads over a branch to what follows: to a branch to where it leads to. */
static const char *move_put_condition(struct moved *out, uint32_t in, uint32_t without_target, unsigned low,
                                      uintptr_t at, uintptr_t to, uintptr_t target)
{
    const uint32_t two_on = 2u << low;
    move_put(out, (in & without_target) | two_on);
    const char *why = move_put_branch(out, to, at + 4);
    return why ? why : move_put_branch(out, to, target);
}

/* ldr of a word that lies at a distance, into a general register. */
static const char *move_put_load(struct moved *out, uint32_t in, uintptr_t from)
{
    static const uint32_t loads[] = {0xb9400000u, 0xf9400000u, 0xb9800000u}; /* 32 bits, 64, 32 with a sign */
    unsigned reg = in & 31, kind = in >> 30;
    if (in & 1u << 26)
        return "it loads a vector from a distance";
    if (kind == 3) { /* only a hint */
        move_put(out, 0xd503201fu);
        return NULL;
    }
    if (reg == 31) /* into nothing; the same register number is the stack pointer as a base */
        return "it loads into no register";
    move_put_constant(out, reg, from);
    move_put(out, loads[kind] | reg << 5 | reg);
    return NULL;
}

/* Groups of branches, exceptions and system instructions that do not count from where they are. */
static const char *move_put_system(struct moved *out, uint32_t in)
{
    if ((in & 0xffbffc1fu) == 0xd61f0000u || /* br, ret */
        (in & 0xffe0001fu) == 0xd4000001u || /* svc */
        (in & 0xffc00000u) == 0xd5000000u)   /* system, and hints */
        move_put(out, in);
    else if ((in & 0xffe0001fu) == 0xd4200000u)
        return "it is a breakpoint";
    else
        return "it is an instruction that this version does not know";
    return NULL;
}

const char *move_instruction(struct moved *out, uintptr_t at, uintptr_t to)
{
    uint32_t in;
    const char *why;
    memcpy(&in, (const void *)at, sizeof(in));
    out->n = 0;
    if ((in & 0x7c000000u) == 0x14000000u) { /* b, bl */
        if (in >> 31)
            move_put_constant(out, 30, at + 4);
        return move_put_branch(out, to, at + (uintptr_t)(move_field(in, 0, 26) * 4));
    }
    if ((in & 0xff000000u) == 0x54000000u || (in & 0x7e000000u) == 0x34000000u) /* b.cond, cbz, cbnz */
        return move_put_condition(out, in, ~(0x7ffffu << 5), 5, at, to, at + (uintptr_t)(move_field(in, 5, 19) * 4));
    if ((in & 0x7e000000u) == 0x36000000u) /* tbz, tbnz */
        return move_put_condition(out, in, ~(0x3fffu << 5), 5, at, to, at + (uintptr_t)(move_field(in, 5, 14) * 4));
    if ((in & 0x1f000000u) == 0x10000000u) { /* adr, adrp */
        intptr_t distance = move_field(in, 5, 19) * 4 + (intptr_t)(in >> 29 & 3);
        if ((in & 31) == 31)
            move_put(out, 0xd503201fu); /* into nothing */
        else
            move_put_constant(out, in & 31,
                              in >> 31 ? (at & ~(uintptr_t)0xfff) + (uintptr_t)(distance * 4096)
                                       : at + (uintptr_t)distance);
        return NULL;
    }
    if ((in & 0x3b000000u) == 0x18000000u)
        return move_put_load(out, in, at + (uintptr_t)(move_field(in, 5, 19) * 4));
    if ((in >> 26 & 7) == 5) /* what is left of branches, exceptions, system */
        why = move_put_system(out, in);
    else if (!(in >> 27 & 3)) /* reserved, or of an extension that has come since: its encodings begin so */
        why = "it is an instruction that this version does not know";
    else {
        move_put(out, in);
        why = NULL;
    }
    return why;
}

#endif

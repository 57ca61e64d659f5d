/* Functions of our own that begin with each kind of instruction: with their code changed they are preceded by the
 * handler, which sees their arguments, and do what they did; or it is refused, with the reason. */
#define _GNU_SOURCE
#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intercept.h"
#include "support/world.h"
#include "support/run_suite.h"

#if defined(__x86_64__) || defined(__aarch64__)

typedef long (*function)(long a, long b, long c, long d, long e, long f);

static long seen[6], calls;

/* What a handler may change, it changes. */
static void note(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
{
    seen[0] = (long)a, seen[1] = (long)b, seen[2] = (long)c, seen[3] = (long)d, seen[4] = (long)e, seen[5] = (long)f;
    calls++;
#if defined(__aarch64__)
    __asm__ volatile("movi v0.16b, #255\nmovi v1.16b, #255\nmovi v2.16b, #255\nmovi v3.16b, #255\n"
                     "movi v4.16b, #255\nmovi v5.16b, #255\nmovi v6.16b, #255\nmovi v7.16b, #255\n"
                     "mov x0, #-1\nmov x1, #-1\nmov x2, #-1\nmov x3, #-1\nmov x4, #-1\nmov x5, #-1\n"
                     "mov x6, #-1\nmov x7, #-1\nmov x8, #-1\nmov x9, #-1\nmov x16, #-1\nmov x17, #-1" ::
                         : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x16", "x17", "v0", "v1", "v2",
                           "v3", "v4", "v5", "v6", "v7");
#else
    __asm__ volatile("mov $-1,%%eax\nmov $-1,%%ecx\nmov $-1,%%edx\nmov $-1,%%esi\nmov $-1,%%edi\nmov $-1,%%r8d\n"
                     "mov $-1,%%r9d\nmov $-1,%%r10d\nmov $-1,%%r11d" ::
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
#endif
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

struct sample {
    const char *name;
    const char *refused; /* part of the reason; NULL: it is changed */
    const void *code;
    size_t bytes;
    size_t at;   /* where in it the instruction is */
    size_t from; /* and where it is called */
    bool pad;    /* it begins with a landing pad, which must stay */
};

#if defined(__aarch64__)
#define CODE(...) (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__})
#define RET       0xd65f03c0
#define ADD_X0_X1 0x8b010000 /* x0 += x1 */
#define ADD_1     0x91000400 /* x0 += 1 */
#define ADD_2     0x91000800
static const struct sample samples[] = {
    {"nop", NULL, CODE(0xd503201f, ADD_X0_X1, RET), 0, 0, false},
    {"a constant", NULL, CODE(0xd28000e2, 0x8b020000, RET), 0, 0, false},            /* mov x2,#7; add x0,x0,x2 */
    {"a landing pad", NULL, CODE(0xd503245f, ADD_X0_X1, RET), 0, 0, true},           /* bti c */
    {"a signed return", NULL, CODE(0xd503233f, ADD_1, 0xd50323bf, RET), 0, 0, true}, /* paciasp; autiasp */
    {"a frame", NULL, CODE(0xa9bf7bfd, ADD_1, 0xa8c17bfd, RET), 0, 0, false},        /* stp x29,x30,[sp,#-16]!; ldp */
    {"the stack", NULL, CODE(0xd10083ff, 0xf90007e1, 0xf94007e0, 0x910083ff, RET), 0, 0,
     false},                                                     /* sub sp; str, ldr; add sp */
    {"adr", NULL, CODE(0x10000080, RET), 0, 0, false},           /* adr x0,.+16 */
    {"adr backwards", NULL, CODE(0x30ffffe0, RET), 0, 0, false}, /* adr x0,.-3 */
    {"adrp", NULL, CODE(0xb0000000, RET), 0, 0, false},          /* adrp x0, the next page */
    {"adrp backwards", NULL, CODE(0x90ffffe0, RET), 0, 0, false},
    {"b", NULL, CODE(0x14000003, ADD_1, RET, ADD_2, RET), 0, 0, false},
    {"b backwards", NULL, CODE(ADD_2, RET, 0x17fffffe, ADD_1, RET), 8, 8, false},
    /* stp x29,x30; bl; what it calls: the distance of x30 from there, and back to the first caller */
    {"bl", NULL, CODE(0xa9bf7bfd, 0x94000003, 0xd4200000, 0xd4200000, 0x10ffffa1, 0xcb0103c0, 0xa8c17bfd, RET), 4, 0,
     false},
    {"b.al", NULL, CODE(0x5400006e, ADD_1, RET, ADD_2, RET), 0, 0, false},
    {"cbz not taken", NULL, CODE(0xb4000060, ADD_1, RET, ADD_2, RET), 0, 0, false},
    {"cbnz taken", NULL, CODE(0xb5000060, ADD_1, RET, ADD_2, RET), 0, 0, false},
    {"cbnz backwards", NULL, CODE(ADD_2, RET, 0xb5ffffc5, ADD_1, RET), 8, 8, false}, /* x5 */
    {"tbz", NULL, CODE(0x36000060, ADD_1, RET, ADD_2, RET), 0, 0, false},            /* bit 0 of x0 */
    {"tbnz", NULL, CODE(0x37000060, ADD_1, RET, ADD_2, RET), 0, 0, false},
    {"tbnz of a high bit", NULL, CODE(0xb7f80060, ADD_1, RET, ADD_2, RET), 0, 0, false},
    {"ldr", NULL, CODE(0x58000040, RET, 0x89abcdef, 0x01234567), 0, 0, false},
    {"ldr of 32 bits", NULL, CODE(0x18000040, RET, 0x89abcdef), 0, 0, false},
    {"ldrsw", NULL, CODE(0x98000040, RET, 0x89abcdef), 0, 0, false},
    {"prfm", NULL, CODE(0xd8000040, ADD_1, RET), 0, 0, false},
    {"svc", NULL, CODE(0xd2801588, 0xd4000001, RET), 4, 0, false}, /* mov x8,#SYS_getpid */
    {"mrs", NULL, CODE(0xd53bd040, RET), 0, 0, false},             /* tpidr_el0 */
    {"br", NULL, CODE(0xd61f03c0), 0, 0, false},                   /* br x30 */
    {"ret", NULL, CODE(RET), 0, 0, false},
    {"a vector from a distance", "loads a vector", CODE(0x9c000040, RET), 0, 0, false},
    {"a breakpoint", "breakpoint", CODE(0xd4200000, RET), 0, 0, false},
    {"blr", "does not know", CODE(0xd63f0040, RET), 0, 0, false},
    {"undefined", "does not know", CODE(0x00000000, RET), 0, 0, false},
    {"SVE", "does not know", CODE(0x25d8e3e0, RET), 0, 0, false}, /* ptrue */
};
#else
#define CODE(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})
static const struct sample samples[] = {
    {"a constant", NULL, CODE(0xb8, 7, 0, 0, 0, 0x48, 0x01, 0xf0, 0xc3), 0, 0, false}, /* mov $7,%eax; add %rsi,%rax */
    {"a landing pad", NULL, CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0xc3), 0, 0,
     true},                                                                            /* endbr64; mov %rdi,%rax */
    {"push", NULL, CODE(0x41, 0x57, 0x41, 0x5f, 0x48, 0x89, 0xf0, 0xc3), 0, 0, false}, /* push, pop %r15 */
    {"the stack", NULL, CODE(0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3), 0, 0, false},
    {"a large frame", NULL, CODE(0x48, 0x81, 0xec, 0, 1, 0, 0, 0x48, 0x89, 0xd0, 0x48, 0x81, 0xc4, 0, 1, 0, 0, 0xc3), 0,
     0, false},
    {"test", NULL, CODE(0x48, 0x85, 0xff, 0x0f, 0x95, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3), 0, 0, false}, /* setne */
    {"jmp", NULL, CODE(0xe9, 1, 0, 0, 0, 0xc3, 0x48, 0x89, 0xf8, 0xc3), 0, 0, false},
    {"a short jmp", NULL, CODE(0xeb, 1, 0xc3, 0x48, 0x89, 0xf8, 0xc3), 0, 0, false},
    {"lea", "does not know", CODE(0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3), 0, 0, false},
    {"from a distance", "does not know", CODE(0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3), 0, 0, false},
    {"a breakpoint", "does not know", CODE(0xcc, 0xc3), 0, 0, false},
};
#endif

enum { N = sizeof(samples) / sizeof(samples[0]), GAP = 64, BEFORE = 4 * GAP };

/* Each function at a multiple of 64, with unused bytes before the first and between them, as in the C library. */
static uint8_t *put_functions(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    while (bytes < BEFORE + (N + 1) * GAP)
        bytes *= 2;
    uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
#if defined(__x86_64__)
    memset(at, 0x90, bytes);
#endif
    for (size_t i = 0; i < N; i++)
        memcpy(at + BEFORE + i * GAP, samples[i].code, samples[i].bytes);
    CHECK(mprotect(at, bytes, PROT_READ | PROT_EXEC) == 0);
    __builtin___clear_cache((char *)at, (char *)at + bytes);
    return at + BEFORE;
}

static long call(const uint8_t *at, long a)
{
    function f;
    memcpy(&f, &at, sizeof(f));
    return f(a, 20, 300, 4000, 50000, 600000);
}

START_TEST(one_kind)
{
    const struct sample *s = &samples[_i];
    uint8_t *function_at = put_functions() + (size_t)_i * GAP, *at = function_at + s->at;
    const uint8_t *from = function_at + s->from;
    struct intercept_entry e = {.name = s->name, .fn = note, .at = at};
    char why[256] = "";
    long odd = 0, even = 0;
    if (!s->refused) {
        odd = call(from, 1);
        even = call(from, -2);
    }
    int rc = intercept_plan(&e, 1, why, sizeof(why));
    if (s->refused) {
        CHECK_MSG(rc == STRATA_ERR_UNSUPPORTED && strstr(why, s->refused) && strstr(why, s->name), "%s: %d: %s",
                  s->name, rc, why);
        return;
    }
    CHECK_MSG(rc == STRATA_OK, "%s: %s", s->name, why);
    CHECK_MSG(intercept_patch(&e, 1, why, sizeof(why)) == STRATA_OK, "%s: %s", s->name, why);
    CHECK(calls == 0 && atomic_load(e.word) == e.new_word);
    CHECK((memcmp(at, (const uint8_t *)s->code + s->at, 4) == 0) == s->pad);
    for (int twice = 1; twice <= 2; twice++) {
        long got = call(from, 1);
        CHECK_MSG(got == odd, "%s: %lx, not %lx", s->name, got, odd);
        CHECK_MSG(calls == 2 * twice - 1 && seen[0] == 1 && seen[5] == 600000, "%s: %ld calls", s->name, calls);
        got = call(from, -2);
        CHECK_MSG(got == even, "%s: %lx, not %lx", s->name, got, even);
        CHECK(calls == 2 * twice && seen[0] == -2 && seen[1] == 20 && seen[2] == 300 && seen[3] == 4000 &&
              seen[4] == 50000 && seen[5] == 600000);
    }
    /* Changed again: the jump that is there now is what is moved. */
    struct intercept_entry again = {.name = s->name, .fn = note, .at = at};
    CHECK_MSG(intercept_plan(&again, 1, why, sizeof(why)) == STRATA_OK, "%s: %s", s->name, why);
    CHECK(intercept_patch(&again, 1, why, sizeof(why)) == STRATA_OK);
    CHECK(call(from, -2) == even && calls == 6);
}
END_TEST

#if defined(__aarch64__)
/* Vectors in which arguments are passed, and x8: weighted, so that none can stand for another. */
START_TEST(what_is_passed_in_other_registers)
{
    static const uint32_t code[] = {
        0xd503201f, /* nop */
        0x1e612800, 0x1e622800, 0x1e632800, 0x1e642800, 0x1e652800,
        0x1e662800, 0x1e672800, 0x9e620101, 0x1e612800, /* d0 += d1, ... d7; d1 = x8; d0 += d1 */
        RET};
    uint8_t *at = put_functions();
    struct intercept_entry e = {.name = "nop", .fn = note, .at = at};
    char why[256] = "";
    CHECK(mprotect(at - BEFORE, GAP, PROT_READ | PROT_WRITE) == 0);
    memcpy(at, code, sizeof(code));
    CHECK(mprotect(at - BEFORE, GAP, PROT_READ | PROT_EXEC) == 0);
    __builtin___clear_cache((char *)at, (char *)at + sizeof(code));
    CHECK(intercept_plan(&e, 1, why, sizeof(why)) == STRATA_OK &&
          intercept_patch(&e, 1, why, sizeof(why)) == STRATA_OK);
    register double d0 __asm__("d0") = 1, d1 __asm__("d1") = 2, d2 __asm__("d2") = 4, d3 __asm__("d3") = 8;
    register double d4 __asm__("d4") = 16, d5 __asm__("d5") = 32, d6 __asm__("d6") = 64, d7 __asm__("d7") = 128;
    register long x8 __asm__("x8") = 256;
    register uint8_t *x9 __asm__("x9") = at;
    __asm__ volatile("blr x9"
                     : "+w"(d0), "+w"(d1), "+w"(d2), "+w"(d3), "+w"(d4), "+w"(d5), "+w"(d6), "+w"(d7), "+r"(x8),
                       "+r"(x9)
                     :
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
                       "x17", "x30", "d16", "d17", "d18", "d19", "d20", "d21", "d22", "d23", "d24", "d25", "d26", "d27",
                       "d28", "d29", "d30", "d31", "cc", "memory");
    double got = d0;
    CHECK(calls == 1);
    CHECK_MSG(got == 511, "%f", got);
}
END_TEST
#endif

int main(void)
{
#if defined(__SANITIZE_THREAD__)
    printf("SKIP: no code is changed under the thread sanitizer\n");
    return 77;
#endif
    Suite *suite = suite_create("memory_intercept, what is replaced");
    TCase *t = tcase_create("all");
    tcase_add_loop_test(t, one_kind, 0, N);
#if defined(__aarch64__)
    tcase_add_test(t, what_is_passed_in_other_registers);
#endif
    suite_add_tcase(suite, t);
    return run_suite(suite);
}

#else

int main(void)
{
    printf("SKIP: no code is changed on this processor\n");
    return 77;
}

#endif

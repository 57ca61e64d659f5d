#!/bin/bash
# memory_intercept's way to change code, in a program that is linked statically: the calls of the program and of its C
# library are seen there as well.
set -eu
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
case ${SANITIZER_FLAGS-} in ?*)
    echo "SKIP: sanitizers are not linked statically"
    exit 77
    ;;
esac
case $(${CC:-cc} -dumpmachine) in
x86_64-* | aarch64-*) ;;
*)
    echo "SKIP: code is changed on x86-64 and aarch64 only"
    exit 77
    ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/main.c" <<'END'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "intercept.h"

/* The compiler knows that these calls do not come back to us. */
static volatile uintptr_t wanted;
static volatile int seen;

void st_memory_gone(uintptr_t from, uintptr_t to)
{
    seen += from <= wanted && wanted < to;
}

static int told_of(void *at)
{
    int before = seen;
    wanted = (uintptr_t)at;
    return before;
}

int main(void)
{
    char why[256] = "";
    const char *missing = "";
    int before;
    if (!intercept_find(intercept_entries, intercept_n_entries, &missing))
        return printf("no %s\n", missing), 1;
    if (intercept_plan(intercept_entries, intercept_n_entries, why, sizeof(why)) != 0 ||
        intercept_patch(intercept_entries, intercept_n_entries, why, sizeof(why)) != 0)
        return printf("%s\n", why), 1;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *a = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    before = told_of(a);
    a[0] = 1;
    if (madvise(a, page, MADV_DONTNEED) != 0 || a[0] != 0 || seen == before)
        return puts("madvise was not seen"), 1;
    before = told_of(a);
    if (munmap(a, 2 * page) != 0 || seen == before)
        return puts("munmap was not seen"), 1;
    a = malloc(1 << 22);
    before = told_of(a + 2 * page);
    free(a);
    if (seen == before)
        return puts("free was not seen"), 1;
    a = sbrk((intptr_t)(4 * page));
    before = told_of(a + 2 * page);
    if (sbrk(-(intptr_t)(4 * page)) == (void *)-1 || seen == before)
        return puts("a lowered heap was not seen"), 1;
    puts("all seen");
    return 0;
}
END
folder=$STRATA_SOURCE/components/memory_intercept
if ! ${CC:-cc} -static -std=gnu11 -O2 -I"$folder" -I"$STRATA_SOURCE/include" "$work/main.c" "$folder"/{change,find,handlers,segments,patch,patch_*,move_*}.c \
    -o "$work/main" 2>"$work/err"; then
    if grep -q 'cannot find -lc' "$work/err"; then
        echo "SKIP: there is no static C library"
        exit 77
    fi
    cat "$work/err"
    fail "it does not build"
fi
# Another processor's program is run by an emulator.
${TEST_EMULATOR-} "$work/main" || fail "see above"

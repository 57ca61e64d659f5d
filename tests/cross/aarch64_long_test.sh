#!/bin/bash
# memory_intercept on aarch64: a cross compiler builds its unit tests, with the core and the components that they need, and an emulator
# that notices changed code runs them. One program is linked statically.
set -eu
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
skip() {
    echo "SKIP: $*"
    exit 77
}
case ${SANITIZER_FLAGS-} in ?*) skip "other processors are tested without sanitizers" ;; esac
[ "$(uname -m)" != aarch64 ] || skip "this is an aarch64: its own tests have it all"
for need in "aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu" "qemu-aarch64 qemu-user"; do
    command -v "${need% *}" >/dev/null || skip "${need% *} is missing; on Debian: apt-get install ${need#* }"
done
root=$(aarch64-linux-gnu-gcc -print-file-name=libc.so.6)
root=$(realpath "$(dirname "$root")/..")
[ -e "$root/lib/ld-linux-aarch64.so.1" ] || skip "no C library for aarch64; on Debian: apt-get install libc6-dev-arm64-cross"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$STRATA_SOURCE"
here=tests/cross/data
folder=components/memory_intercept
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "four unit tests$(form ", compiled without optimization, four turns of each loop" "")"
full_form || export CROSS_TURNS=4
tests=(moved intercept others storm)
printf '#ifndef _GNU_SOURCE\n#define _GNU_SOURCE 1\n#endif\n' >"$work/config.h"
level=$(form 0 1)
export work here level

compile() { # source
    local object
    object=$work/$(tr / _ <<<"$1").o
    aarch64-linux-gnu-gcc -c -std=gnu11 -O"$level" -Wall -Wextra -Werror -fno-strict-aliasing -DST_STATIC_COMPONENTS \
        -DST_COMPONENT_DIR='""' -DST_SYSCONF_DIR='""' -I"$here" -I"$work" -Iinclude -I. -Itests -I"$(dirname "$1")" \
        -Icomponents/memory_intercept "$1" -o "$object"
}
export -f compile

{
    ls framework/*/*.c channel/*.c components/{memory_intercept,rcache/tree,rcache/none,mpool/plain,pml_ob1,bml_r2,btl_self,rte_host}/*.c \
        "$here"/*.c tests/support/{world,watchdog,random,paths,fake_registrar}.c 2>/dev/null |
        grep -v '^framework/pml/report\(_text\)*\.c$\|^framework/base/\(job_report\|live\)\.c$'
    printf "$folder/tests/%s_test.c\n" "${tests[@]}"
} >"$work/sources"
xargs -P 2 -I{} bash -c 'compile {}' <"$work/sources" || fail "it does not build"
mkdir "$work/tests"
mv "$work"/*_tests_*_test.c.o "$work/tests"

CC=aarch64-linux-gnu-gcc TEST_EMULATOR=qemu-aarch64 bash tests/hostile/memory_static_test.sh

# Under the emulator a process is several times as slow.
export STRATA_TEST_TIMEOUT_SCALE=4 STRATA_MCA_mca_component_path=/nowhere
run() { # program
    timeout 900 qemu-aarch64 -L "$root" "$1" >"$work/out" 2>&1 || {
        cat "$work/out"
        fail "$(basename "$1"), see above"
    }
    grep -E '^[0-9]+ tests, 0 failed$' "$work/out" || { cat "$work/out" && fail "$(basename "$1") ran no tests"; }
}
for t in "${tests[@]}"; do
    aarch64-linux-gnu-gcc "$work"/*.o "$work/tests/"*"_${t}_test.c.o" -lpthread -ldl -lm -o "$work/${t}_test" || fail "it does not link"
    run "$work/${t}_test"
done

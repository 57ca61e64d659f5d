#!/bin/bash
# Programs that are built already find our entry points: every name that libibverbs takes or returns objects by, in its version.
# The library links nothing but libc.
set -eu

library=$STRATA_BUILD/softhca/.libs/libsofthca.so
if [ ! -f "$library" ]; then
    echo "SKIPPED: no libsofthca"
    exit 77
fi
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
real=$(ldconfig -p | sed -n 's/.*libibverbs\.so\.1 .*=> //p' | head -n 1)
[ -n "$real" ] || fail "no libibverbs.so.1"

defaults() { nm -D --with-symbol-versions "$1" | sed -n 's/.* T \(_\?ibv_[a-z0-9_]*@@IBVERBS_[0-9.]*\)$/\1/p' | sort; }
# Those that know no object of a device.
free='^(ibv_copy_.*|ibv_do(nt)?fork_range|ibv_.*_str|ibv_rate_to_.*|ibv_get_sysfs_path|ibv_read_sysfs_file)@@'
missing=$(comm -23 <(defaults "$real" | grep -Ev "$free") <(defaults "$library"))
[ -z "$missing" ] || fail "not stood in for: $missing"
extra=$(comm -13 <(defaults "$real") <(defaults "$library"))
[ -z "$extra" ] || fail "libibverbs has no $extra"
# Besides, those by which programs look for files of devices and use librdmacm's: softhca/files.c; and what a build for coverage adds.
others=$(nm -D --defined-only --with-symbol-versions "$library" | grep -Ev '@@IBVERBS_| A IBVERBS_| [TW] (access|close|fstat|open|stat|write)(@|$)| (__gcov_[a-z_]*|mangle_path)$' || true)
[ -z "$others" ] || fail "exported as well: $others"

# The sanitizers' libraries come on top where they are used.
if [ -z "$SANITIZER_FLAGS" ]; then
    needed=$(objdump -p "$library" | sed -n 's/^ *NEEDED *//p' | grep -Ev '^(libc|libpthread|libdl|ld-linux.*)\.so' || true)
    [ -z "$needed" ] || fail "linked with $needed"
fi

if command -v ibv_devinfo >/dev/null && [ -z "$SANITIZER_FLAGS" ]; then
    bindings=$(LD_DEBUG=bindings LD_PRELOAD=$library ibv_devinfo 2>&1 >/dev/null | grep 'binding file ibv_devinfo ')
    for name in ibv_get_device_list ibv_open_device ibv_query_device ibv_query_gid ibv_close_device ibv_free_device_list; do
        grep "\`$name'" <<<"$bindings" | grep -q ' to [^ ]*libsofthca' || fail "ibv_devinfo is bound to another $name"
    done
fi
echo "bindings: ok"

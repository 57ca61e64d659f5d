#!/bin/bash
# strata-run --softhca: every rank has the devices, jobs do not see each other, and what is missing is said.
. "$STRATA_SOURCE/tests/integration/lib.sh" || exit 1
library=$STRATA_BUILD/softhca/.libs/libsofthca.so
[ -f "$library" ] || { echo "skipped: libsofthca was not built (Debian: libibverbs-dev)"; exit 77; }
command -v ibv_devices >/dev/null || { echo "skipped: ibv_devices is not installed (Debian: ibverbs-utils)"; exit 77; }
# shellcheck disable=SC2154 # by `make check`
case ${SANITIZER_FLAGS-} in ?*) echo "skipped: a library with sanitizers does not load into a program without"; exit 77 ;; esac

expect_status 0 strata-run -n 3 --softhca ibv_devices
check "each of three ranks lists soft0" test "$(grep -c '^ *soft0' "$work/out")" -eq 3
SOFTHCA_DEVICES=2 expect_status 0 strata-run -n 1 --softhca ibv_devices; out_has soft1
run strata-run -n 1 ibv_devices
check "without --softhca there is none" test "$(grep -c soft "$work/out")" -eq 0
expect_status 0 strata-run -n 2 --softhca printenv SOFTHCA_FABRIC; out_has "^job-[0-9]*\$"
check "the ranks of a job are in one fabric" test "$(sort -u "$work/out" | wc -l)" -eq 1
# A variable set by -x takes precedence over the caller's environment.
expect_status 0 strata-run -n 1 --softhca -x SOFTHCA_FABRIC=mine printenv SOFTHCA_FABRIC; out_has '^mine$'
LD_PRELOAD=libc.so.6 expect_status 0 strata-run -n 1 --softhca -x LD_PRELOAD=libm.so.6 printenv LD_PRELOAD
out_has '/libsofthca.so:libm.so.6$'
STRATA_SOFTHCA=/nonexistent/lib.so expect_status 1 strata-run -n 1 --softhca true; err_has '/nonexistent/lib.so'
mkdir "$work/a place" && : >"$work/a place/libsofthca.so"
STRATA_SOFTHCA="$work/a place/libsofthca.so" expect_status 1 strata-run -n 1 --softhca true; err_has 'no path with a space or a colon: .*/a place/libsofthca.so'
expect_status 0 strata-run -n 2 --softhca "$STRATA_BUILD/docs/examples/hello"
# A device on which nothing can be registered: nobody has asked for it, all goes by sm, and nothing is said.
SOFTHCA_MEMLOCK=64k expect_status 0 strata-run -n 2 --softhca "$STRATA_BUILD/tests/programs/hostile" exchange
check "silence about a transport that nobody asked for" test ! -s "$work/err"
SOFTHCA_MEMLOCK=64k expect_status 0 strata-run -n 2 --softhca --mca mca_base_verbose 2 --mca btl_openib_priority 30 \
    "$STRATA_BUILD/tests/programs/hostile" exchange
err_has 'component btl_openib skipped: .*Cannot allocate memory'
# Nothing would go by the device where sm reaches all ranks: it is not opened, but by name or where there is no sm.
expect_status 0 strata-run -n 2 --softhca --mca mca_base_verbose 2 "$STRATA_BUILD/tests/programs/hostile" exchange
err_has 'component btl_openib skipped: all ranks of the job are on this machine, where sm is used'
for list in self,sm,openib ^sm; do
    expect_status 0 strata-run -n 2 --softhca --mca mca_base_verbose 2 --mca btl "$list" "$STRATA_BUILD/tests/programs/hostile" exchange
    check "btl $list opens the device" test "$(grep -c 'component btl_openib skipped' "$work/err")" -eq 0
done
SOFTHCA_MEMLOCK=64k expect_status 1 strata-run -n 2 --softhca --mca btl self,openib "$STRATA_BUILD/tests/programs/hostile" exchange
err_has 'openib was asked for and cannot be used: '
check "nothing is left in /dev/shm" test -z "$(find /dev/shm -name '*softhca*')"
finish

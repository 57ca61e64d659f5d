# shellcheck shell=bash
# Test programs under the address and undefined sanitizers, and under the thread sanitizer. The full form runs the scripts under the
# first two as well.
target=check-programs parts=programs
if [ "$STRATA_TEST_FORM" = full ]; then target=check parts=all; fi
name="address and undefined sanitizers"
if count "build, $name" env BUILD_TARGET=$parts bash config/ci/build.sh "$BUILD/ci/asan" --enable-sanitizers=address,undefined CFLAGS="-g1 -O1"; then
    harness "$name" "$BUILD/ci/asan" "$TEST_JOBS" $target
fi
name="thread sanitizer"
if count "build, $name" env BUILD_TARGET=programs bash config/ci/build.sh "$BUILD/ci/tsan" --enable-sanitizers=thread CFLAGS="-g1 -O1"; then
    harness "$name" "$BUILD/ci/tsan" "$TEST_JOBS" check-programs
fi

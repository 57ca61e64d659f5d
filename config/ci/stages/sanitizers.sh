# shellcheck shell=bash
# Test programs under the address and undefined sanitizers, and under the thread sanitizer. The full form runs the scripts under the
# first two as well, with components as plugins; the short form shares its build with the static stage.
name="address and undefined sanitizers"
if [ "$STRATA_TEST_FORM" = full ]; then
    if count "build, $name" bash config/ci/build.sh "$BUILD/ci/asan" --enable-sanitizers=address,undefined CFLAGS="-g1 -O1"; then
        harness "$name" "$BUILD/ci/asan" "$TEST_JOBS" check
    fi
else
    test_instrumented
fi
name="thread sanitizer"
if count "build, $name" env BUILD_TARGET=programs bash config/ci/build.sh "$BUILD/ci/tsan" --enable-sanitizers=thread CFLAGS="-g1 -O1"; then
    harness "$name" "$BUILD/ci/tsan" "$TEST_JOBS" check-programs
fi

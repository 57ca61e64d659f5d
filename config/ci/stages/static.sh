# shellcheck shell=bash
# Components linked into the library, with the quick tests, and the lines that they execute.
if count "build, static components" bash config/ci/build.sh "$BUILD/ci/static" --enable-static-components --enable-coverage CFLAGS=-O0; then
    harness "static components" "$BUILD/ci/static" "$TEST_JOBS" check
    count "line coverage" bash config/ci/coverage.sh "$BUILD/ci/static" 85
fi

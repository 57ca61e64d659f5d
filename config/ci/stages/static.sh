# shellcheck shell=bash
# Components linked into the library, with the quick tests, and the lines that they execute. The short form leaves out tests for which
# it makes no difference: those of softhca, of several machines and of tools.
target=check-components
if [ "$STRATA_TEST_FORM" = full ]; then target=check; fi
if count "build, static components" bash config/ci/build.sh "$BUILD/ci/static" --enable-static-components --enable-coverage CFLAGS=-O1; then
    harness "static components" "$BUILD/ci/static" "$TEST_JOBS" "$target"
    count "line coverage" bash config/ci/coverage.sh "$BUILD/ci/static" 85
fi

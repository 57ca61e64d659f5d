# shellcheck shell=bash
# Components linked into the library, and the lines that the tests execute. The short form takes the test programs that the sanitizers
# stage has run, or runs them; the full form has a build without sanitizers, and all quick tests.
if [ "$STRATA_TEST_FORM" = full ]; then
    folder=$BUILD/ci/static
    if count "build, static components" bash config/ci/build.sh "$folder" --enable-static-components --enable-coverage CFLAGS=-O1; then
        find "$folder" -name '*.gcda' -delete
        harness "static components" "$folder" "$TEST_JOBS" check
        count "line coverage" bash config/ci/coverage.sh "$folder" 85
    fi
elif test_instrumented; then
    count "line coverage" bash config/ci/coverage.sh "$INSTRUMENTED" 85
fi

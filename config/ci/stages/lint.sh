# shellcheck shell=bash
# clang with warnings as errors over the library and the tools (in the full form the test programs, too), layout, static analysis,
# shell scripts, the API reference.
count "build, clang" bash config/ci/build.sh "$BUILD/ci/clang" CC=clang --enable-werror CFLAGS=-O0 &&
    if [ "$STRATA_TEST_FORM" = full ]; then count "test programs, clang" make -C "$BUILD/ci/clang" -k -j"$JOBS" check TESTS=; fi
for what in format shell cppcheck; do count "lint, $what" bash config/ci/lint.sh "$what"; done
# clang-tidy reads the build's config.h.
if build_plugins; then
    count "lint, tidy" bash config/ci/lint.sh tidy
    count "API reference" make -C "$BUILD" doc
fi

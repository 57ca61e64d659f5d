# shellcheck shell=bash
# clang's warnings, layout, static analysis, shell scripts, the API reference. clang-tidy is clang's front end and prints its warnings;
# the full form builds everything with clang as well, which shows what its optimizer and the linker say.
if [ "$STRATA_TEST_FORM" = full ]; then
    count "build, clang" bash config/ci/build.sh "$BUILD/ci/clang" CC=clang --enable-werror &&
        count "test programs, clang" make -C "$BUILD/ci/clang" -k -j"$JOBS" check TESTS=
fi
for what in format shell cppcheck; do count "lint, $what" bash config/ci/lint.sh "$what"; done
# clang-tidy reads the build's config.h.
if build_plugins; then
    count "lint, tidy" bash config/ci/lint.sh tidy
    count "API reference" make -C "$BUILD" doc
fi

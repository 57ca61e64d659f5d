# shellcheck shell=bash
# The archive. In the short form: it holds every file of the tree. In the full form it is unpacked, built, installed and removed,
# and a few tests show that it is whole: what git tracks is tested by the other stages.
if build_plugins; then
    if [ "$STRATA_TEST_FORM" = full ]; then
        count "make distcheck" make -C "$BUILD" -j"$JOBS" distcheck TESTS="tests/integration/headers_test.sh \
            tests/integration/examples_test.sh tests/hostile/loader_test.sh tests/footprint/sizes_test \
            tests/openib/connect/all_to_all_long_test.sh"
    else
        count "the archive is complete" bash config/ci/dist.sh "$BUILD"
    fi
fi

# shellcheck shell=bash
# The plugins form with all quick tests; the main job of `./quickstart run`. The test that builds plugins against an installation takes
# the one of the main job; in the full form another time its own, which `make check` by itself does.
if bash config/ci/run.sh; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    failures+=("the main job")
fi
if build_plugins; then
    harness "plugins" "$BUILD" "$TEST_JOBS" check STRATA_PREFIX="$BUILD/install"
    if [ "$STRATA_TEST_FORM" = full ]; then
        count "plugin built against a staged installation" make -C "$BUILD" check TESTS=tests/integration/plugin_test.sh
    fi
fi

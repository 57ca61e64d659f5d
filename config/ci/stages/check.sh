# shellcheck shell=bash
# The plugins form with all quick tests; the main job of `./quickstart run`; a plugin built against the installation.
if bash config/ci/run.sh; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    failures+=("the main job")
fi
if build_plugins; then
    harness "plugins" "$BUILD" "$TEST_JOBS" check STRATA_TEST_FORM=full
    count "plugin built against the installation" env STRATA_PREFIX="$BUILD/install" STRATA_SOURCE="$PWD" \
        bash tests/integration/plugin_test.sh
fi

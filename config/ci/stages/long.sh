# shellcheck shell=bash
# The long tests, in the plugins form; each is shorter in the short form.
if build_plugins; then harness "long" "$BUILD" "$TEST_JOBS" check-long; fi

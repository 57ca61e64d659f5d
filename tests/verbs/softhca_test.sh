#!/bin/bash
# The verbs suite on softhca, preloaded. Skipped while there is no such library in the build.
set -u
library=$STRATA_BUILD/softhca/.libs/libsofthca.so
if [ ! -e "$library" ]; then
    echo "SKIP no softhca in this build: $library"
    exit 77
fi
# A sanitizer's own library has to come first.
first=
for name in asan tsan; do
    case $name,${SANITIZER_FLAGS-} in
    asan,*address* | tsan,*thread*) first=$("${CC:-gcc}" -print-file-name="lib$name.so"): ;;
    esac
done
export VERBS_DEVICE=soft0 VERBS_PRELOAD=$first$library
exec bash "$(dirname "$0")/run_suite.sh" "$STRATA_BUILD"

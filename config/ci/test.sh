#!/bin/bash
# Everything: builds in every form, every test, lint, documentation, installation, distribution, coverage. Started by
# `./quickstart test`, which has installed the packages. Ends with a line `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/../.." || exit 2
. config/ci/lib.sh

passed=0 failed=0 started=$SECONDS
failures=() skips=()
durations=$LOGS/durations # a line for each test: seconds, which
mkdir -p "$LOGS"
: >"$durations"

# A step that counts as one test.
count() { # title command...
    step "$@"
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skips+=("$1: $(tail -n 1 "$LOG")") && return 77 ;;
    *) failed=$((failed + 1)) && failures+=("$1 ($LOG)") && return 1 ;;
    esac
}

# Adds up the results that automake's harness left in a build folder; prints, for each test that failed, the lines
# of its log that say so, then its end.
tally() { # name folder
    local trs result log reason begun which
    while IFS= read -r trs; do
        log=${trs%.trs}.log
        which=$(realpath --relative-to="$2" "${trs%.trs}")
        begun=$(stat -c %W "$log") # 0: the file system does not know
        [ "$begun" = 0 ] || echo "$(($(stat -c %Y "$log") - begun)) $1: $which" >>"$durations"
        result=$(sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' "$trs" | head -n 1)
        case $result in
        PASS | XFAIL) passed=$((passed + 1)) ;;
        SKIP)
            reason=$(grep -v '^SKIP ' "$log" | grep -i skip | tail -n 1)
            skips+=("$1: $which: ${reason:-$(tail -n 2 "$log" | head -n 1)}") ;;
        *)
            failed=$((failed + 1))
            failures+=("$1: $which ($log)")
            printf '      FAIL  %s: the end of %s:\n' "$1" "$log"
            { grep '^FAIL' "$log" && echo ...; tail -n 40 "$log"; } | sed 's/^/    | /' ;;
        esac
    done < <(find "$2" -path "$2/ci" -prune -o -path "$2/strata-*" -prune -o -name '*.trs' -print | sort)
}

# Builds in a folder and runs `make check` or another target there; its tests count one by one.
check() { # name folder target configure-option...
    local name=$1 dir=$2 target=$3
    shift 3
    count "build, $name" bash config/ci/build.sh "$dir" "$@" || return 1
    count "test programs, $name" make -C "$dir" -k -j"$JOBS" check TESTS= || return 1
    harness "$name" "$dir" "$target"
}

# Runs a target of tests in a folder where all is built, half as many at a time as there are jobs, and two at least: most
# tests are several processes, and some wait. The guest is a machine of two processors by itself.
harness() { # name folder target
    local name=$1 dir=$2 target=$3 before=$failed at_once=$(((JOBS + 1) / 2))
    [ "$at_once" -gt 1 ] || at_once=2
    [ "$target" != check-guest ] || at_once=1
    find "$dir" -path "$dir/ci" -prune -o -name '*.trs' -exec rm -f {} +
    TAIL=2 step "make $target, $name" make -C "$dir" -k -j"$at_once" "$target"
    local status=$?
    tally "$name" "$dir"
    if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then
        failed=$((failed + 1))
        failures+=("make $target, $name ($LOG)")
    fi
}

if bash config/ci/run.sh; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
    failures+=("the main job")
fi

check "plugins" "$BUILD" check-full --prefix="$BUILD/install" --enable-werror
harness "guest" "$BUILD" check-guest
count "plugin built against the installation" env STRATA_PREFIX="$BUILD/install" STRATA_SOURCE="$top" \
    bash tests/integration/plugin_test.sh
check "address and undefined sanitizers" "$BUILD/ci/asan" check --enable-sanitizers=address,undefined
check "thread sanitizer" "$BUILD/ci/tsan" check-programs --enable-sanitizers=thread
check "static components" "$BUILD/ci/static" check --enable-static-components --enable-coverage CFLAGS=-O0
count "line coverage" bash config/ci/coverage.sh "$BUILD/ci/static" 85
count "build, clang" bash config/ci/build.sh "$BUILD/ci/clang" CC=clang --enable-werror &&
    count "test programs, clang" make -C "$BUILD/ci/clang" -k -j"$JOBS" check TESTS=
for what in format shell cppcheck tidy; do count "lint, $what" bash config/ci/lint.sh "$what"; done
count "API reference" make -C "$BUILD" doc
# The archive holds what git tracks, which every other step has tested: a few tests show that what it holds is whole.
count "make distcheck" make -C "$BUILD" -j"$JOBS" distcheck TESTS="tests/integration/headers_test.sh \
    tests/integration/examples_test.sh tests/hostile/loader_test.sh tests/footprint/sizes_test tests/openib/connect/all_to_all_test.sh"

echo
if [ ${#skips[@]} -gt 0 ]; then
    echo "Skipped:"
    printf '  %s\n' "${skips[@]}"
fi
if [ ${#failures[@]} -gt 0 ]; then
    echo "Failed:"
    printf '  %s\n' "${failures[@]}"
fi
if [ -s "$durations" ]; then
    echo "The longest, in seconds:"
    sort -rn "$durations" | head -n 20 | sed 's/^/  /'
fi
printf 'Took %d min %d s.\n' $(((SECONDS - started) / 60)) $(((SECONDS - started) % 60))
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "${#skips[@]}"
[ "$failed" -eq 0 ]

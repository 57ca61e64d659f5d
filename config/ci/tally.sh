# shellcheck shell=bash
# Results of the stages of `./quickstart test`: what passed, failed and was skipped, and how long each test took. Sourced by test.sh.
# One stage at a time is counted in `passed`, `failed`, `failures`, `skips`, `durations`; stage_end keeps it in $STATE.
STATE=$BUILD/ci/state

stage_begin() { # STAGE
    stage=$1 stage_started=$SECONDS passed=0 failed=0
    failures=() skips=() durations=()
    printf '\n== %s\n' "$1"
}

# Prints the stage's summary line and keeps its results, for the summary of the whole run and for --resume.
stage_end() {
    local took=$((SECONDS - stage_started))
    printf '%s: %d passed, %d failed, %d skipped\n' "$stage" "$passed" "$failed" "${#skips[@]}"
    mkdir -p "$STATE"
    declare -p stage took passed failed failures skips durations | sed 's/^declare /declare -g /' >"$STATE/$stage.new"
    mv "$STATE/$stage.new" "$STATE/$stage"
}

# A step that counts as one test.
count() { # title command...
    step "$@"
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skips+=("$1: $(tail -n 1 "$LOG")") && return 77 ;;
    *) failed=$((failed + 1)) && failures+=("$1 ($LOG)") && return 1 ;;
    esac
}

# Prints the line of a log that says why its test failed, cut short: of a script, of Check, of support/watchdog.h.
reason_of() { # LOG
    grep -m 1 -aE '^FAILED|^FAIL:|:[FE]:|: rank -?[0-9]+: ' "$1" | cut -c 1-600
}

# Adds up the results that automake's harness left in a build folder; prints, for each test that failed, the lines
# of its log that say so, then its end.
tally() { # name folder
    local trs result log reason begun which
    while IFS= read -r trs; do
        log=${trs%.trs}.log
        which=$(realpath --relative-to="$2" "${trs%.trs}")
        begun=$(stat -c %W "$log") # 0: the file system does not know
        [ "$begun" = 0 ] || durations+=("$(($(stat -c %Y "$log") - begun)) $1: $which")
        result=$(sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' "$trs" | head -n 1)
        case $result in
        PASS | XFAIL) passed=$((passed + 1)) ;;
        SKIP)
            reason=$(grep -v '^SKIP ' "$log" | grep -i skip | tail -n 1)
            skips+=("$1: $which: ${reason:-$(tail -n 2 "$log" | head -n 1)}") ;;
        *)
            failed=$((failed + 1))
            failures+=("$1: $which ($log): $(reason_of "$log")")
            printf '      FAIL  %s: the end of %s:\n' "$1" "$log"
            { grep '^FAIL' "$log" && echo ...; tail -n 40 "$log"; } | sed 's/^/    | /' ;;
        esac
    done < <(find "$2" -path "$2/ci" -prune -o -path "$2/strata-*" -prune -o -name '*.trs' -print | sort)
}

# Runs a target of tests in a folder where all is built; its tests count one by one. Most tests are several processes, and many
# wait: more of them run at a time than there are processors.
harness() { # name folder jobs target...
    local name=$1 dir=$2 jobs=$3 before=$failed
    shift 3
    find "$dir" -path "$dir/ci" -prune -o -name '*.trs' -exec rm -f {} +
    TAIL=2 step "tests, $name" make -C "$dir" -k -j"$jobs" "$@"
    local status=$?
    tally "$name" "$dir"
    if [ "$status" -ne 0 ] && [ "$failed" -eq "$before" ]; then
        failed=$((failed + 1))
        failures+=("make $*, $name ($LOG)")
    elif [ -z "$(find "$dir" -path "$dir/ci" -prune -o -name '*.trs' -print -quit)" ]; then
        failed=$((failed + 1))
        failures+=("make $*, $name: no test was run ($LOG)")
    fi
}

# The plugins form with its test programs, which several stages use: built once in a run.
plugins_built=
build_plugins() {
    [ -z "$plugins_built" ] || return 0
    count "build, plugins" bash config/ci/build.sh "$BUILD" --prefix="$BUILD/install" &&
        count "test programs, plugins" make -C "$BUILD" -k -j"$JOBS" check TESTS= && plugins_built=yes
}

# Test programs with the components linked into the library, under the address and undefined sanitizers, with their lines counted: one
# build and one run for two stages of the short form. The mark names the stage that counted the results, and holds only if that stage
# has finished. Status 1: it was not built.
INSTRUMENTED=$BUILD/ci/instrumented
test_instrumented() {
    local name="static components, address and undefined sanitizers" mark=$STATE/.instrumented
    if [ -e "$mark" ] && [ -e "$STATE/$(cat "$mark")" ]; then return 0; fi
    [ -z "${not_instrumented-}" ] || return 1
    not_instrumented=yes
    count "build, $name" env BUILD_TARGET=programs bash config/ci/build.sh "$INSTRUMENTED" --enable-static-components --enable-coverage \
        --enable-sanitizers=address,undefined CFLAGS="-g1 -O1" || return 1
    find "$INSTRUMENTED" -name '*.gcda' -delete # what an earlier run has executed
    harness "$name" "$INSTRUMENTED" "$TEST_JOBS" check-programs
    echo "$stage" >"$mark"
    not_instrumented=
}

# Prints what the stages brought: a line each, skips, failures, the longest tests; last the line with the sums.
summary() { # STAGE...
    local s all_passed=0 all_failed=0 all_took=0 all_skips=() all_failures=() all_durations=()
    echo
    for s in "$@"; do
        [ -e "$STATE/$s" ] || continue
        # shellcheck source=/dev/null
        . "$STATE/$s"
        printf '%-12s %4d passed, %d failed, %d skipped in %d min %02d s\n' "$s" "$passed" "$failed" "${#skips[@]}" $((took / 60)) $((took % 60))
        all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed)) all_took=$((all_took + took))
        all_skips+=(${skips[@]+"${skips[@]}"}) all_failures+=(${failures[@]+"${failures[@]}"})
        all_durations+=(${durations[@]+"${durations[@]}"})
    done
    if [ ${#all_skips[@]} -gt 0 ]; then printf '%s\n' "Skipped:" "${all_skips[@]/#/  }"; fi
    if [ ${#all_failures[@]} -gt 0 ]; then printf '%s\n' "Failed:" "${all_failures[@]/#/  }"; fi
    if [ ${#all_durations[@]} -gt 0 ]; then
        echo "The longest, in seconds:"
        printf '%s\n' "${all_durations[@]}" | sort -rn | head -n 20 | sed 's/^/  /'
    fi
    printf 'Took %d min %d s.\n' $((all_took / 60)) $((all_took % 60))
    printf '%d passed, %d failed, %d skipped\n' "$all_passed" "$all_failed" "${#all_skips[@]}"
    [ "$all_failed" -eq 0 ]
}

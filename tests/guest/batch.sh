#!/bin/bash
# usage: tests/guest/batch.sh TEST...: runs guest tests (paths below the top of the source), those that want the same guest one
# after the other in one boot. A test says which guest it wants by a line `# guest: OPTIONS OF tests/guest/run`, and by a line
# `# short form: not run` that the short form leaves it out; one without a `# guest:` line boots its guests itself. Leaves .log
# and .trs in $STRATA_BUILD, as automake's harness does. A test that hangs for $GUEST_TEST_LIMIT seconds (1200) or
# panics the kernel fails, and the rest of its batch is booted anew. Exit status 0 when none failed.
set -u
cd "$STRATA_SOURCE" || exit 2
. tests/support/form.sh
limit=${GUEST_TEST_LIMIT:-1200}
folder=$(mktemp -d "$STRATA_BUILD/guest-batch.XXXXXX") || exit 2
failed=0 boots=0 booting=0 between=0 working=0
pid=
end_guest() {
    [ -z "$pid" ] || { kill "$pid" && wait "$pid"; } 2>/dev/null
    pid=
}
trap 'end_guest; rm -rf "$folder"' EXIT
trap 'exit 143' TERM INT HUP

header() { sed -n "s/^# $2: *//p" "$1" | head -n 1; } # TEST FIELD
written() { stat -c %.3Y "$1"; }                      # by this machine's clock
since() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", b - a }'; }
add() { awk -v a="$1" -v b="$2" 'BEGIN { print a + b }'; }

# Takes over the log of a test, with its time of birth, and writes its result.
result() { # TEST LOG STATUS
    local name=$STRATA_BUILD/${1%.sh} word=PASS
    case $3 in 0) ;; 77) word=SKIP ;; *) word=FAIL && failed=$((failed + 1)) ;; esac
    mkdir -p "${name%/*}"
    mv "$2" "$name.log"
    printf ':test-result: %s\n:global-test-result: %s\n:recheck: no\n:copy-in-global-log: no\n' $word $word >"$name.trs"
    echo "$word: $1 (exit status: $3)" >>"$name.log"
    echo "$word: $1"
}

by_itself() { # TEST
    bash "$1" >"$folder/log" 2>&1 </dev/null &
    pid=$!
    wait $pid
    local status=$?
    pid=
    result "$1" "$folder/log" $status
}

# One boot for the tests whose folders are in $boot. Returns when all have ended, or the guest has, or a test hangs: `limit` seconds
# after it was started, or the boot took so long.
boot() { # OPTION...
    local began=$EPOCHREALTIME since=$SECONDS current=-1 n
    boots=$((boots + 1))
    bash tests/guest/run "$@" --timeout 86400 --out "$boot" -- bash tests/guest/batch_node.sh "$boot" >"$folder/said" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        n=$current
        while [ -e "$boot/$((n + 1))/started" ]; do n=$((n + 1)); done
        if [ $n != $current ]; then current=$n since=$SECONDS; fi
        [ $((SECONDS - since)) -lt $((n < 0 && limit < 600 ? 600 : limit)) ] || { end_guest && return; }
        sleep 0.2
    done
    wait $pid
    guest_status=$?
    pid=
    if [ -e "$boot/0/begun" ]; then booting=$(add $booting "$(since "$began" "$(written "$boot/0/begun")")"); fi
}

# Why the Nth test of the boot has no status; run's exit status is 99 when this script has ended it.
why() { # N
    local what="the boot"
    if [ -e "$boot/$1/started" ]; then what="the test"; elif [ -e "$boot/$1/begun" ]; then what="the guest's reset"; fi
    if [ "$guest_status" = 99 ]; then echo "$what hung for $limit s; the guest says:"; else echo "the guest died in $what:"; fi
}

# Collects what one boot has brought. Leaves in $batch the tests that it did not come to; the first one without a status is the
# one that hung, or with which the guest died.
collect() {
    local n test rest=() culprit=
    for n in "${!batch[@]}"; do
        test=${batch[n]}
        if [ -e "$boot/$n/status" ]; then
            between=$(add $between "$(since "$(written "$boot/$n/begun")" "$(written "$boot/$n/started")")")
            working=$(add $working "$(since "$(written "$boot/$n/started")" "$(written "$boot/$n/status")")")
            result "$test" "$boot/$n/log" "$(cat "$boot/$n/status")"
        elif [ -z "$culprit" ] && { [ "$guest_status" != 77 ] || [ -e "$boot/$n/begun" ]; }; then
            culprit=$test
            touch "$boot/$n/log"
            { echo "FAIL: $(why "$n")" && cat "$folder/said"; } >>"$boot/$n/log"
            result "$test" "$boot/$n/log" 99
        elif [ "$guest_status" = 77 ]; then
            result "$test" "$folder/said" 77
            cp "$STRATA_BUILD/${test%.sh}.log" "$folder/said"
        else
            rest+=("$test")
        fi
    done
    batch=(${rest[@]+"${rest[@]}"})
}

run_batch() { # OPTIONS TEST...: in as many boots as it takes
    local options=$1 n
    shift
    batch=("$@")
    while [ ${#batch[@]} -gt 0 ]; do
        rm -rf "${folder:?}/boot"
        boot=$folder/boot guest_status=99
        for n in "${!batch[@]}"; do
            mkdir -p "$boot/$n"
            echo "${batch[n]}" >"$boot/$n/test"
        done
        eval "boot $options"
        collect
    done
}

declare -A batches=()
order=() alone=() left_out=()
for test in "$@"; do
    if ! full_form && grep -q '^# short form: not run' "$test"; then
        left_out+=("$test")
        rm -f "$STRATA_BUILD/${test%.sh}".{log,trs}
        continue
    fi
    if ! grep -q '^# guest:' "$test"; then alone+=("$test") && continue; fi
    options=$(header "$test" guest)
    [ -n "${batches[x$options]-}" ] || order+=("$options")
    batches[x$options]="${batches[x$options]-} $test"
done
[ ${#left_out[@]} = 0 ] || printf 'in the full form only: %s\n' "${left_out[@]}"
for options in ${order[@]+"${order[@]}"}; do
    # shellcheck disable=SC2086 # a word for each test
    run_batch "$options" ${batches[x$options]}
done
for test in ${alone[@]+"${alone[@]}"}; do by_itself "$test"; done
printf 'RESULT: %d boots took %.0f s; of the tests in batches resets took %.0f s, work %.0f s\n' $boots $booting $between $working
[ $failed = 0 ]

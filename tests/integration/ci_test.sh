#!/bin/bash
# Steps of ./quickstart (config/ci/lib.sh): what they print, their statuses, and that a signal ends a step with its command. Stages
# (config/ci/tally.sh): how their tests are counted.
. "$STRATA_SOURCE/tests/integration/lib.sh"
steps() { # STATUS SHELL-TEXT
    # shellcheck disable=SC2016 # that shell expands it
    expect_status "$1" bash -c 'cd "$1" && . "$0/config/ci/lib.sh" && eval "$2"' "$STRATA_SOURCE" "$work" "$2"
}
steps 0 'step "one thing" sh -c "echo RESULT: all of it"'
out_has '^ok .* one thing$'; out_has '^ *all of it$'
steps 3 'step "one thing" sh -c "echo why; exit 3"'
out_has '^FAIL .* one thing (status 3)'; out_has '| why$'
steps 77 'step "one thing" sh -c "echo no such program; exit 77"'; out_has '^SKIP .* no such program$'
steps 124 'STEP_LIMIT=1 step "one thing" sleep 1000'; out_has 'ended after 1 s'

# A stage is no success without a test.
mkdir "$work/tree"
tests_of() { # MAKEFILE: of a folder whose tests are a stage
    printf %b "$1" >"$work/tree/Makefile"
    steps 0 '. "$0/config/ci/tally.sh"; stage_begin some; harness some "$PWD/tree" 1 check; stage_end'
}
tests_of 'check:\n'
out_has '^some: 0 passed, 1 failed, 0 skipped$'
tests_of 'check:\n\techo :test-result: PASS >one.trs; : >one.log\n'
out_has '^some: 1 passed, 0 failed, 0 skipped$'
tests_of 'check:\n\techo :test-result: FAIL >one.trs; : >one.log; false\n'
out_has '^some: 0 passed, 1 failed, 0 skipped$'
tests_of 'check:\n\techo :test-result: PASS >one.trs; : >one.log; false\n'
out_has '^some: 1 passed, 1 failed, 0 skipped$'

cat >"$work/slow" <<'END'
trap 'sleep 0.5; echo ended >>"$0.log"; exit' TERM
echo begun >"$0.log"
while :; do sleep 0.02; done
END
for sig in TERM INT; do
    rm -f "$work/slow.log"
    env --default-signal=INT bash -c 'cd "$1" && . "$0/config/ci/lib.sh" && step slow bash slow' "$STRATA_SOURCE" "$work" >"$work/out" 2>"$work/err" &
    pid=$!
    check "SIG$sig: the step begins" wait_until file_has "$work/slow.log" begun
    kill -$sig $pid
    wait $pid
    check "SIG$sig: the status says so, not $?" test $? = 130
    check "SIG$sig: the command has ended first" grep -q ended "$work/slow.log"
done
finish

#!/bin/bash
# Ranks that die, are stopped, or get messages that nobody expects, over TCP alone: the tests of any transport, told to use this one.
# Short form: ranks that die.
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "dying ranks" "dying ranks, load")"
export STRATA_MCA_btl=tcp,self STRATA_MCA_mca_base_report_transports=text
failures=0
# shellcheck disable=SC2046 # words
for name in death $(form "" "load"); do
    bash "$STRATA_SOURCE/tests/hostile/${name}_test.sh" || failures=$((failures + 1))
done
out=$(timeout -k 5 "${job_limit:-300}" strata-run -n 3 "$STRATA_BUILD/tests/programs/hostile" exchange 2>&1) || { echo "$out" && failures=$((failures + 1)); }
[ "$(grep -c 'all 2 peers by tcp' <<<"$out")" = 3 ] || { echo "not all went by TCP: $out" && failures=$((failures + 1)); }
exit $((failures > 0))

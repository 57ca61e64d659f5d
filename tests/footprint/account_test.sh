#!/bin/bash
# The account of a rank's memory closes: of what its private memory has grown by since strata_init, at most 5 % is neither Strata's
# by mem_report nor the libraries', and at most 5 % is counted twice. Over shared memory, TCP, and openib on softhca.
set -u
. "$STRATA_SOURCE/tests/support/wait.sh"
! grep -q fsanitize "$STRATA_BUILD/config.status" || grep -q "SANITIZER_FLAGS\"\]=\"\"" "$STRATA_BUILD/config.status" ||
    { echo "skipped under sanitizers"; exit 77; }
grep -q 'COVERAGE_FLAGS"\]=""' "$STRATA_BUILD/config.status" ||
    { echo "SKIP: a build for coverage has its counters in each rank's memory, which nobody accounts for"; exit 77; }
status=0
account() { # NAME OPTIONS...
    local name=$1 out
    out=$(STRATA_MCA_mca_base_account_memory=1 strata-run --timeout "$job_limit" -n 8 "${@:2}" "$STRATA_BUILD/tests/programs/account") ||
        { echo "FAILED: $name: status $?: $out"; status=1; return; }
    echo "$name:" && echo "$out"
    awk -F', ' '
        { for (i = 2; i <= NF; i++) { n = split($i, f, " "); kb = f[n]; sub(/ [0-9]+$/, "", $i); v[$i] = kb }
          grown = v["private"] - v["before strata_init"]; n_ranks++
          if (grown < 200 || v["not accounted for"] > 0.05 * grown || v["accounted twice"] > 0.05 * grown || v["page tables"] < 8) bad = 1 }
        END { exit bad || n_ranks != 8 }' <<<"$out" || { echo "FAILED: $name: more than 5 % apart, or ranks are missing"; status=1; }
}
account sm --mca btl sm,self
account tcp --mca btl tcp,self
if [ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1; then
    account "openib on softhca" --softhca --mca btl openib,self
    account "openib on softhca, connections that are closed" --softhca --mca btl openib,self --mca btl_openib_max_connected_peers 4
fi
exit $status

# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used by those that source it
# What tests of btl_openib on softhca share: the checks of tests/hostile, and reasons to skip. Sourced.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
[ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 ||
    { echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"; exit 77; }
case ${SANITIZER_FLAGS-} in ?*) echo "SKIP: a library with sanitizers does not load into a program without"; exit 77 ;; esac

limit=$job_limit # seconds of each run, after which it counts as hung
export SOFTHCA_TALLY=$work/tally # what came of faults: a line of each process that ends by itself
try() { # WANTED-STATUS [VARIABLE=VALUE...] COMMAND...
    rm -f "$SOFTHCA_TALLY"
    run "$1" timeout -k 2 $limit env "${@:2}"
}
tally() { # WHAT: how often it came in the last run, over all ranks
    sed -n "s/.* $1 \([0-9]*\).*/\1/p" "$SOFTHCA_TALLY" 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}
came() { # WHAT LEAST MOST MEANWHILE: a fault, so often
    local n
    n=$(tally "$1")
    { [ "$n" -ge "$2" ] && [ "$n" -le "$3" ]; } || complain "$4: $1 came $n times, not $2 to $3"
}
openib=(strata-run --softhca --mca btl "openib,self")
# On a busy machine strata-perf says how far it is.
unsaid() { ! grep -vE '^strata-perf: .* so far$' "$work/err" || complain "says something: $1"; }
# Queues: per peer; shared; shared with 16 buffers that may not become more; the least credits there may be.
peer=P,8k,40,1,32:P,32k,17,1,16
shared=S,8k,4096,16,32:S,32k,1024,8,16
short=S,8k,16,4,32:S,32k,16,4,16
poor=S,8k,64,4,2:S,32k,16,4,2
poor_peer=P,8k,10,1,2:P,32k,4,1,2
# The program behind tests/programs/traffic.c: traffic QUEUES RANKS ARGS...
traffic() {
    try 0 "${openib[@]}" --mca btl_openib_receive_queues "$1" -n "$2" "$STRATA_BUILD/tests/programs/traffic" "${@:3}"
    echo "$1, $2 ranks: $(cat "$work/out")"
}
# Makes $work/differently, which starts a program where one rank, else 1, has an environment variable.
differently() { # VARIABLE VALUE [RANK]
    printf '#!/bin/bash\n[ "$PMIX_RANK" != %s ] || export %s=%s\nexec "$@"\n' "${3-1}" "$1" "$2" >"$work/differently"
    chmod +x "$work/differently"
}
# Of a run with --report-transports=json.
report() { # WHAT [FIELD...]: see report.py
    python3 "$STRATA_SOURCE/tests/openib/report.py" "$work/err" "$@"
}
count() { report sum "$1"; } # FIELD: its sum over the ranks of the last run
at_least() { # FIELD NUMBER WHAT
    local n
    n=$(count "$1")
    [ "$n" -ge "$2" ] || complain "$3: $1 is $n, less than $2"
}
unsaid_but_reports() { ! grep -v '^{' "$work/err" || complain "says something: $1"; }
# Every rank sends to every other at once, and nothing was connected but a tree for a barrier. All connect, data is checked;
# with a limit connections go again meanwhile. Says how long a connection takes.
at_once() { # RANKS METHOD MOST-CONNECTIONS [VARIABLE=VALUE...] [-- PARAMETERS...]
    local ranks=$1 method=$2 kept=$3 all=$(($1 * ($1 - 1))) environment=() what
    shift 3
    while [ $# -gt 0 ] && [ "$1" != -- ]; do environment+=("$1") && shift; done
    what="$ranks ranks, $method, ${kept/#0/all} kept${environment[*]:+, ${environment[*]}}${2:+, ${*:2}}"
    try 0 ${environment[@]+"${environment[@]}"} "${openib[@]}" -n "$ranks" --report-transports=json --mca btl_openib_connect "$method" \
        --mca btl_openib_max_connected_peers "$kept" "${@:2}" "$STRATA_BUILD/tests/programs/traffic" alltoall 1000 1 1
    unsaid_but_reports "$what"
    [ "$(grep -c "\"connect\":\"$method\"" "$work/err")" = "$ranks" ] || complain "$what: not all ranks connect by $method and report"
    if [ "$kept" = 0 ]; then
        [ "$(count connections)" = $all ] || complain "$what: $(count connections) ends of connections were made, not $all"
        [ "$(count torn_down)" = 0 ] || complain "$what: $(count torn_down) connections were taken down"
    else
        at_least connections $all "$what"
        at_least torn_down $((all / 2)) "$what"
        # Who is asked takes half as many more.
        [ "$(count connected)" -le $((ranks * (kept + kept / 2 + 1) + $(count forced))) ] || complain "$what: $(count connected) are kept"
    fi
    echo "$what: $(report connect), $(awk '{ printf "%.2f", $3 / 1e6 }' "$work/out") s until all had heard of all; $(count torn_down) taken down"
}
# The same where messages about connections come so late that they are repeated. Each rank repeats some, and hears some twice; with
# a limit some come when their connection is gone, which are refused. Nobody else sends anything that could be. On a busy machine all
# else is late as well: longer delays are tried then.
at_once_late() { # RANKS METHOD MOST-CONNECTIONS MICROSECONDS PARAMETERS...
    local delay refused=$(($3 > 0)) what="$1 ranks, $2, ${3/#0/all} kept, late"
    for delay in "$4" $((4 * $4)) $((16 * $4)); do
        at_once "$1" "$2" "$3" "SOFTHCA_FAULTS=delay $delay" -- --mca btl_openib_connect_retry_ms 1 "${@:5}"
        [ "$(count repeats)" -lt "$1" ] || [ "$(count duplicates)" -lt "$1" ] || [ "$(count refused)" -lt $refused ] || break
    done
    at_least repeats "$1" "$what"
    at_least duplicates "$1" "$what"
    at_least refused $refused "$what"
    echo "$what by $delay us: $(count repeats) repeated, $(count duplicates) duplicates, $(count refused) refused"
}

# shellcheck shell=bash
# shellcheck disable=SC2034 # what is set here is used by those that source it
# What tests of btl_openib on softhca share: the checks of tests/hostile, and reasons to skip. Sourced.
. "$STRATA_SOURCE/tests/hostile/lib.sh"
[ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 ||
    { echo "SKIP: no softhca or no btl_openib in this build (Debian: libibverbs-dev)"; exit 77; }
case ${SANITIZER_FLAGS-} in ?*) echo "SKIP: a library with sanitizers does not load into a program without"; exit 77 ;; esac

limit=120 # seconds of each run: whoever takes longer hangs
try() { # WANTED-STATUS [VARIABLE=VALUE...] COMMAND...
    run "$1" timeout -k 2 $limit env "${@:2}"
}
openib=(strata-run --softhca --mca btl "openib,self")
unsaid() { [ ! -s "$work/err" ] || complain "says something: $1"; }
# Queues: per peer; shared; shared with 16 buffers that may not become more; the least credits there may be.
peer=P,8k,32,1,32:P,32k,16,1,16
shared=S,8k,4096,16,32:S,32k,1024,8,16
short=S,8k,16,4,32:S,32k,16,4,16
poor=S,8k,64,4,2:S,32k,16,4,2
poor_peer=P,8k,4,1,2:P,32k,4,1,2
# The program behind tests/programs/crowd.c: crowd QUEUES RANKS ARGS...
crowd() {
    try 0 "${openib[@]}" --mca btl_openib_receive_queues "$1" -n "$2" "$STRATA_BUILD/tests/programs/crowd" "${@:3}"
    echo "$1, $2 ranks: $(cat "$work/out")"
}
# Of a run with --report-transports=json.
count() { # FIELD: its sum over the ranks of the last run
    python3 -c 'import json, sys
print(sum(t.get(sys.argv[2], 0) for line in open(sys.argv[1]) if line.startswith("{") for t in json.loads(line)["transports"]))' \
        "$work/err" "$1"
}
at_least() { # FIELD NUMBER WHAT
    local n
    n=$(count "$1")
    [ "$n" -ge "$2" ] || complain "$3: $1 is $n, less than $2"
}
unsaid_but_reports() { ! grep -v '^{' "$work/err" || complain "says something: $1"; }

#!/usr/bin/env bash
# strata-perf: every command runs with tiny counts and its JSON holds what it should; bad options are refused. No speed is
# asserted.
# starts first
set -euo pipefail
. "$STRATA_SOURCE/tests/support/wait.sh"
. "$STRATA_SOURCE/tests/support/form.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

rows() { # (FILE TEST MINIMUM)...: rows of a result, every one with numbers above zero
    python3 - "$@" <<'PY'
import json, sys
for file, test, least in zip(*[iter(sys.argv[1:])] * 3):
    d = json.load(open(file))
    assert d["test"] == test, (file, d["test"])
    assert len(d["rows"]) >= int(least), (file, len(d["rows"]))
    for r in d["rows"]:
        assert r["unit"] in ("us", "MB/s", "s", "kB", "s/GB"), (file, r)
        assert r["low"] <= r["median"] <= r["high"] <= r["max"], (file, r)
        assert r["unit"] in ("kB", "s/GB") or r["median"] > 0, (file, r)
PY
}

results=() # the arguments of rows, for all jobs at once
job() { # RANKS TEST MINIMUM [OPTION]...
    local n=$1 test=$2 least=$3
    shift 3
    results+=("$dir/job-${#results[@]}-$n-ranks" "$test" "$least")
    strata-run --timeout "$job_limit" -n "$n" strata-perf "$test" --json "$@" >"$dir/out" 2>"$dir/err" ||
        fail "$test with $n ranks: $(cat "$dir/out" "$dir/err")"
    cp "$dir/out" "${results[-3]}"
}

refused() { # TEXT ARGUMENT...
    local text=$1 rc=0
    shift
    timeout "$job_limit" strata-perf "$@" >"$dir/out" 2>"$dir/err" || rc=$?
    [ "$rc" = 2 ] || fail "'strata-perf $*' ended with $rc"
    grep -q -e "$text" "$dir/err" || fail "'strata-perf $*' said: $(cat "$dir/err")"
}
# Beside the jobs, in a folder of its own: bad options.
bad_options() {
    dir=$dir/options
    mkdir "$dir"
    refused 'which test'
    refused 'unknown command' latencies
    refused 'one command at a time' latency bw
    refused 'means nothing to latency' latency --depth 4
    refused 'sizes' latency --sizes 8:x
    refused 'power of two' latency --sizes 7:20
    refused 'larger' latency --sizes 64:8
    refused 'number from 1' bw --window 0
    refused 'one-buffer: what arrives' bw --one-buffer --check
    refused 'one-buffer means nothing to ring' ring --one-buffer
    refused 'cold means nothing to ring' ring --cold
    refused 'cold: the one buffer' bw --one-buffer --cold
    refused 'offset takes' latency --offset 4096
    refused 'offset means nothing to match' match --offset 8
    refused 'rounds means nothing to latency' latency --rounds 2
    refused 'number from' latency --iters -3
    refused 'value is missing' latency --mca btl
    refused 'processor numbers' latency --cpus ,
    refused 'no processor 4095 here; there are 0' latency --cpus 0,4095
    refused 'no processor 4095 here' compare --cpus 4095
    refused 'only takes tests' compare --only world
    refused "there is no .ether'" channel --wires sm,ether
    refused "there is no .rows'" channel --tables rows
    refused "there is no .pigeon'" channel --ways zmq,pigeon
    refused 'wires means nothing to latency' latency --wires sm
    refused 'cost means nothing to latency' latency --cost
    refused 'unexpected means nothing to ring' ring --unexpected
    refused 'exchange means nothing to ring' ring --exchange
    refused 'cluster means nothing to latency' latency --cluster
    refused 'one of them at a time' compare --cluster --embed
    refused 'one of them at a time' compare --cluster --against .
    refused 'cluster: --only' compare --cluster --only match
    refused 'unrecognized option' latency --frobnicate
    refused 'needs 2 ranks' bw
    refused 'btl_sm_eager_limit' latency --mca btl_sm_eager_limti 8k
    refused 'no btl component' latency --mca btl tcpp
}
bad_options &
options=$!

tiny=(--iters 2 --batches 3)
job 2 latency 20 --iters 1 --batches 1 --check
job 1 latency 4 "${tiny[@]}" --sizes 8:64 --check
job 2 latency 3 "${tiny[@]}" --sizes 0:2
! strata-run --timeout "$job_limit" -n 1 strata-perf latency --exchange >"$dir/out" 2>"$dir/err" || fail "an exchange of one rank"
grep -q 'exchange needs two ranks' "$dir/err" || fail "an exchange of one rank: $(cat "$dir/err")"
job 2 bw 5 "${tiny[@]}" --sizes 4k:64k --window 4 --check
job 2 bibw 5 "${tiny[@]}" --sizes 4k:64k --window 4 --check
job 2 bw 5 "${tiny[@]}" --sizes 4k:64k --one-buffer
job 2 bibw 5 "${tiny[@]}" --sizes 4k:64k --window 4 --unexpected --check
job 2 latency 5 "${tiny[@]}" --sizes 4k:64k --cold --check
job 2 bibw 5 "${tiny[@]}" --sizes 4k:64k --cold --check
# Longer than the largest cache, and of no whole number of its lines.
cache=$(for level in 3 4; do getconf LEVEL${level}_CACHE_SIZE || true; done 2>/dev/null | grep -E '^[1-9][0-9]*$' | sort -n | tail -n 1) || true
job 2 latency 1 --iters 1 --batches 1 --sizes $((${cache:-67108864} + 1)) --cold
job 2 bw 5 "${tiny[@]}" --sizes 4k:64k --window 4 --offset 16 --check
job 4 mbw 2 "${tiny[@]}" --sizes 8:16 --check
job 4 mbw 4 "${tiny[@]}" --sizes 8:16 --cost
python3 -c 'import json,sys; d=json.load(open(sys.argv[1]))
assert [r.get("kind") for r in d["rows"]] == [None, "processor"] * 2, d
assert d["rows"][1]["max"] > 0, d' "$dir/out" || fail "the cost of a batch: $(cat "$dir/out")"
job 3 mbw 1 "${tiny[@]}" --sizes 8
for test in latency bibw mbw match; do
    size=(--sizes 8)
    [ "$test" != match ] || size=(--depth 10)
    job 2 "$test" 1 "${tiny[@]}" "${size[@]}" --exchange
    python3 -c 'import json,sys; d=json.load(open(sys.argv[1]))
assert all(len(r["exchange"]) == 4 and min(r["exchange"]) > 0 for r in d["rows"]), d' "$dir/out" || fail "the exchange around a batch: $(cat "$dir/out")"
done
job 2 match 4 "${tiny[@]}" --depth 100
job 4 ring 1 "${tiny[@]}" --bytes 1k --check
job 4 ring 3 "${tiny[@]}" --sizes 1k:4k --check
job 1 ring 1 "${tiny[@]}" --check
job 4 start 3
job 4 memory 3
rows "${results[@]}" || fail "rows of a job"
coll() { # ROWS [OPTION]...: times of a call are below each other's bounds, and late ranks make the skew that was planned
    # On a busy machine the others may be late, too, by chance: some attempt shows the skew.
    local attempt
    for attempt in $(seq 20); do
        ! coll_once "$@" || return 0
        echo "coll ${*:2}: attempt $attempt" >&2
    done
    fail "coll ${*:2}: $(cat "$dir/out")"
}
coll_once() {
    local least=$1
    shift
    strata-run --timeout "$job_limit" -n 4 strata-perf coll --json "${tiny[@]}" "$@" >"$dir/out" 2>"$dir/err" ||
        fail "coll $*: $(cat "$dir/out" "$dir/err")"
    python3 - "$dir/out" "$least" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["test"] == "coll" and len(d["rows"]) == int(sys.argv[2]), len(d["rows"])
for r in d["rows"]:
    assert r["mif"] == 0 or r["skew"]["median"] >= (0.9 if r["late"] else 0.01) * r["planned_skew"], r
    for skew, after, call in zip(r["skew"]["samples"], r["after_last"]["samples"], r["in_call"]["samples"]):
        assert after > 0 and 0 < call <= skew + after, r
    assert all(0 < last <= after for last, after in zip(r["last_call"]["samples"], r["after_last"]["samples"])), r
    assert r["resolved"] == (r["planned_skew"] == 0 or r["planned_skew"] >= r["resolution"]), r
PY
}
coll 16 --op alltoall,allgather,allreduce,bcast --sizes 1:2 --mif 0,100 --check
coll 3 --op bcast --sizes 0:2 --mif 0 --check
coll 2 --op barrier --mif 0,100
coll 1 --sizes 4k --mif 10 --late 25 --base 200 --check --mca coll_arrival_ranks 64

strata-run --timeout "$job_limit" -n 2 strata-perf latency --sizes 8 "${tiny[@]}" >"$dir/out" || fail "latency as a table"
grep -q 'one-way us' "$dir/out" || fail "no table heading: $(cat "$dir/out")"
strata-run --timeout "$job_limit" -n 2 strata-perf memory >"$dir/out" || fail "memory as a table"
grep -q '^# Strata memory, 2 ranks; one value of each rank' "$dir/out" || fail "what the numbers are: $(cat "$dir/out")"
grep -qE '^after init +[0-9]+\.[0-9] +[0-9]+\.[0-9] +kB$' "$dir/out" || fail "no memory in kB: $(cat "$dir/out")"
grep -q 'pml_ob1' "$dir/out" || fail "no line of a component: $(cat "$dir/out")"

timeout "$job_limit" strata-perf world --ranks 1000000 --batches 3 --json >"$dir/out" || fail world
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["ranks"]==1000000 and d["init_s"]>0
assert d["allocated_bytes_per_rank"] < 8 and d["resident_bytes_per_rank"] < 8, d' "$dir/out" || fail "$(cat "$dir/out")"

# One round against whichever MPI is here, and against plain copies where two processors are.
timeout "$job_limit" strata-perf compare --only latency,bw,match --sizes 512:1k --depth 10 "${tiny[@]}" --rounds 1 --json >"$dir/out" 2>"$dir/err" ||
    fail "compare: $(cat "$dir/out" "$dir/err")"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert len(d["rows"])==8, len(d["rows"])
assert all(r["strata"]["median"]>0 for r in d["rows"])
bare = [(r["test"], r["bytes"]) for r in d["rows"] if "bare" in r]
assert bare == ([("latency", 512), ("latency", 1024), ("bw", 1024)] if len(d["processors"]) > 1 else []), bare
assert all(r["bare"]["median"]>0 and r["ratio_to_bare"]>0 for r in d["rows"] if "bare" in r)' "$dir/out" || fail "compare: $(cat "$dir/out")"

# Against another build, which is this one: each row twice more, and judged.
processor=$(taskset -cp $$ | grep -oE '[0-9]+' | sed -n 2p)
timeout "$job_limit" strata-perf compare --against "$STRATA_BUILD" --cpus "$processor" --only latency --sizes 8 "${tiny[@]}" --rounds 1 >"$dir/out" 2>"$dir/err" ||
    fail "compare as a table"
grep -q 'targets met' "$dir/out" || fail "no verdict: $(cat "$dir/out")"
timeout "$job_limit" strata-perf compare --against "$STRATA_BUILD" --cpus "$processor" --only match --sizes 8 --depth 10 "${tiny[@]}" --rounds 1 --json >"$dir/out" 2>"$dir/err" ||
    fail "compare --against: $(cat "$dir/out" "$dir/err")"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert len(d["rows"])==4, len(d["rows"])
assert all(r[i]["median"]>0 for r in d["rows"] for i in ("strata", "other", "other_again")) and "openmpi" not in d["rows"][0]
assert all("met" in r for r in d["rows"])' "$dir/out" || fail "compare --against: $(cat "$dir/out")"
if full_form; then
    timeout "$job_limit" strata-perf compare --only latency --sizes 8 "${tiny[@]}" --rounds 1 >"$dir/out" 2>"$dir/err" || fail "compare as a table beside MPI"
    grep -q 'targets met' "$dir/out" || fail "no verdict beside MPI: $(cat "$dir/out")"
    timeout "$job_limit" strata-perf compare --against "$STRATA_BUILD" --only latency --sizes 8 "${tiny[@]}" --rounds 1 >"$dir/out" 2>"$dir/err" ||
        fail "compare --against on the default processors: $(cat "$dir/out" "$dir/err")"
fi
! timeout "$job_limit" strata-perf compare --against "$dir" --only latency >"$dir/other" 2>"$dir/err" || fail "compare --against a folder without tools"
grep -q 'has no strata-run' "$dir/err" || fail "compare --against a folder without tools said: $(cat "$dir/err")"

timeout "$job_limit" strata-perf channel --wires sm --tables tasks --ways channel,send --rounds 1 --json >"$dir/out" 2>"$dir/err" ||
    fail "channel: $(cat "$dir/out" "$dir/err")"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert [(r["table"], r["workers"]) for r in d["rows"]]==[("tasks",8),("tasks-cpu",8)]
assert all(r["ways"][w]["median"]>0 for r in d["rows"] for w in ("channel","strata_send"))' "$dir/out" || fail "channel: $(cat "$dir/out")"
# The twin over a bare connection, without a launcher.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
timeout "$job_limit" env STRATA_TWIN=1@127.0.0.1:$port strata-socket-twin bibw --sizes 8:64k "${tiny[@]}" --check >"$dir/other" 2>&1 &
timeout "$job_limit" env STRATA_TWIN=0@127.0.0.1:$port strata-socket-twin bibw --sizes 8:64k "${tiny[@]}" --check --json >"$dir/out" 2>"$dir/err" ||
    fail "the socket twin: $(cat "$dir/err" "$dir/other")"
wait $! || fail "the socket twin's rank 1: $(cat "$dir/other")"
rows "$dir/out" bibw 14 || fail "the socket twin: $(cat "$dir/out")"

wait "$options" || fail "bad options"
echo "strata-perf: all commands ran"

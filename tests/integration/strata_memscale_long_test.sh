#!/bin/bash
# strata-memscale as a tool: what it measures, going on with a run, refusals, and mistakes that are named.
# starts first
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
. "$STRATA_SOURCE/tests/support/form.sh"
say_form "$(form "one number" "two numbers") of ranks under another launcher and in a world of a million"
tool=strata-memscale
results=$work/results

expect_status 0 $tool --help; out_has "Exit status: 0"
expect_status 0 $tool --version; out_has "strata-memscale (Strata)"
expect_status 0 $tool --list; out_has "srq:softhca"

# --- measuring --------------------------------------------------------------------------------------------------------
few='few:sm;btl_sm_eager_limit=2k'
expect_status 0 $tool -n 2,4 -c sm -c tcp -c "$few" -o "$results"
out_has '^sm  *alltoall  *4 '
check "the results" python3 - "$results" <<'PY'
import csv, json, sys
found = {(r["config"], r["pattern"], r["ranks"]): r for r in json.load(open(sys.argv[1] + "/results.json"))}
assert len(found) == 18, sorted(found)
for (config, pattern, n), r in found.items():
    assert r["mean"]["private"] <= r["largest"]["private"] and r["mean"]["private"] > 100e3, r
    assert r["mean"]["proportional"] > 0 and r["mean"]["page_tables"] > 0 and r["mean"]["init_us"] > 0 and r["kernel_release"]
    assert ("latency_us" in r) == (pattern != "hello") and r["library"].startswith("Strata "), r
    assert (r["mean"]["first_us"] >= 0) == (pattern != "hello"), r
    if pattern != "hello":
        assert 0 < r["latency_us"]["q1"] <= r["latency_us"]["median"] <= r["latency_us"]["q3"] and r["latency_us"]["samples"] == 41
    assert r["parameters"] == ({"btl_sm_eager_limit": "2k"} if config == "few" else {})
    whole = r["configuration"]
    assert len(whole) > 50 and (whole["btl_sm_eager_limit"] in ("2k", "2048")) == (config == "few"), whole
    assert whole["btl"] == ("tcp,self" if config == "tcp" else "sm,self") and r["versions"]["compiler"] and r["versions"]["libibverbs"], r
sm = found["sm", "alltoall", 4]["ours"], found["sm", "hello", 4]["ours"]
assert sum(sm[0].values()) > sum(sm[1].values()), sm
rows = list(csv.DictReader(open(sys.argv[1] + "/results.csv")))
assert len(rows) == 18 and all(float(r["private"]) > 1e5 for r in rows)
PY
! command -v gnuplot >/dev/null || check "figures" test -s "$results/alltoall.svg" -a -s "$results/latency.png"
check "no files of ranks are left" test -z "$(find "$results" -name 'rank*')"

# --- going on, with a line that was cut off ---------------------------------------------------------------------------
sed -i '$d' "$results/results.jsonl"
printf '{"config": "tc' >>"$results/results.jsonl"
expect_status 0 $tool -n 2,4 -c sm -c tcp -c "$few" -o "$results"
check "one job is run again" test "$(grep -c ' of 18: ' "$work/err")" = 1
check "18 results" python3 -c "import json, sys; assert len(json.load(open(sys.argv[1]))) == 18" "$results/results.json"

# --- the model --------------------------------------------------------------------------------------------------------
# Of measurements that are given: 1 MB and 10 kB a peer, and 30 % more at 256 ranks for the second configuration.
mkdir "$work/model"
python3 - "$work/model/results.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as f:
    for config in "right", "wrong":
        for n in 4, 8, 16, 32, 64, 128, 256:
            size = (1e6 + 1e4 * (n - 1)) * (1.3 if config == "wrong" and n == 256 else 1)
            print(json.dumps({"config": config, "transport": "tcp", "parameters": {}, "pattern": "alltoall", "ranks": n,
                              "library": "Strata", "mean": {"private": size}, "largest": {}, "ours": {}}), file=f)
PY
expect_status 1 $tool --model -n 4 -p alltoall -c right:tcp -o "$work/model"
out_has '^right  *alltoall  *fitted on N = 4 to 128; at 256: 3.55 MB, measured 3.55, [+-]0.0 %$'
out_has '^wrong .*, -23.1 %: not within 10 %$'
out_has '    private  *1 MB + 10 kB P$'
check "the prediction" python3 -c "import json, sys; assert abs(json.load(open(sys.argv[1]))[0]['predicted']['1000000'] / 10.001e9 - 1) < 0.01" "$work/model/model.json"
expect_status 0 $tool --model -n 2 -p hello -c sm -o "$results"
out_has 'sm  *hello  *no model: it takes four numbers of ranks'

# --- another launcher -------------------------------------------------------------------------------------------------
if command -v mpirun.openmpi >/dev/null; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    expect_status 0 $tool --launcher 'mpirun.openmpi --oversubscribe --bind-to none -n %n' -n "$(form 3 2,3)" -p hello,alltoall -c sm \
        -c "$few" -o "$work/launcher"
    check "its results" python3 - "$work/launcher" "$(form 4 8)" <<'PY'
import json, sys
found = {(r["config"], r["pattern"], r["ranks"]): r for r in json.load(open(sys.argv[1] + "/results.json"))}
assert len(found) == int(sys.argv[2]), sorted(found)
for (config, pattern, n), r in found.items():
    assert ("latency_us" in r) == (pattern != "hello") and r["mean"]["private"] > 100e3, r
    assert (sum(r["ours"].values()) > sum(found[config, "hello", n]["ours"].values())) == (pattern != "hello"), r
PY
    check "it leaves nothing" test -z "$(find "$work/launcher" -name 'strata-memscale.*')"
    expect_status 1 $tool --launcher 'false %n' -n 2 -p hello -c sm -o "$work/launcher2"; err_has 'false %n ended with status 1'
fi
expect_status 2 $tool --launcher 'srun -n 2' -n 2 -c sm -o "$work/launcher2"; err_has 'words with %n'
expect_status 2 $tool --launcher 'x %n' -n 2 -c openmpi-vader -o "$work/launcher2"; err_has "openmpi-vader: --launcher is for Strata's"

# --- real ranks in a world of a million -------------------------------------------------------------------------------
for world in '' '--simulate-world 1000000'; do
    # shellcheck disable=SC2086 # two words
    expect_status 0 $tool -n "$(form 4 2,4)" -p hello,alltoall -c sm -c tcp $world -o "$work/world"
done
check "a rank that nobody sends to has 8 bytes at most" python3 - "$work/world" "$(form 8 16)" <<'PY'
import json, sys
found = {(r["config"], r["pattern"], r["ranks"]): r for r in json.load(open(sys.argv[1] + "/results.json"))}
assert len(found) == int(sys.argv[2]), sorted(found)
for (config, pattern, n), r in found.items():
    assert r["world"] == (1000000 if "@" in config else n), r
    assert ("latency_us" in r) == (pattern != "hello"), r
    if "@" in config:
        beside = found[config.split("@")[0], pattern, n]
        assert sum(r["ours"].values()) <= sum(beside["ours"].values()) + 8e6, (r["ours"], beside["ours"])
        assert r["mean"]["private"] <= beside["mean"]["private"] + 8e6, (r, beside)
PY
expect_status 2 $tool -n 4 -c sm --simulate-world 3 -o "$work/world"; err_has "4 ranks are more than the world's 3"
expect_status 2 $tool -n 2 -c openmpi-vader --simulate-world 9 -o "$work/world"; err_has 'configuration openmpi-vader.*: only Strata simulates a world'

# --- what cannot be measured ------------------------------------------------------------------------------------------
expect_status 1 $tool -n 1024 -p hello -c srq -o "$results"
err_has 'srq with 1024 ranks is refused: softhca holds 1023 processes'
expect_status 1 $tool -n 1000000 -p alltoall -c sm -o "$results"
err_has 'alltoall with 1000000 ranks is refused: it needs about .* GiB, and .* GiB of the available memory may be used, enough for [0-9]*;'
# Estimates: queues per peer run out of memory at far fewer ranks than shared ones, as do rings of eager RDMA for all peers.
expect_status 0 $tool --estimate -p hello,alltoall -c srq -c per-peer -c eager-4 -c eager-all -c few-connections \
    -o "$work/estimate"
check "the order of the estimates" python3 - "$work/out" <<'PY'
import sys
most = {tuple(line.split()[:2]): int(line.split()[2]) for line in open(sys.argv[1]).read().splitlines()[1:]}
assert len(most) == 10, most
all_of = {c: n for (c, pattern), n in most.items() if pattern == "alltoall"}
def fewer(a, b): # of what memory limits
    return all_of[a] < all_of[b] or all_of[a] == all_of[b] == 1023
assert 0 < all_of["per-peer"] and fewer("per-peer", "eager-all") and fewer("eager-all", "srq"), all_of
assert all_of["eager-all"] <= all_of["eager-4"] <= all_of["srq"] <= 1023 and fewer("srq", "few-connections"), all_of
assert most["srq", "hello"] >= all_of["srq"], most
PY
check "an estimate leaves no folder" test ! -e "$work/estimate"
expect_status 1 $tool -n 2 -p hello -c 'wrong:sm;no_such_parameter=1' -o "$results"
err_has 'no_such_parameter'
err_has 'wrong, hello with 2 ranks: strata-run ended with status 2'
check "what was measured is kept" test "$(grep -c '"config"' "$results/results.csv")$(grep -c alltoall "$results/results.csv")" = 06
expect_status 2 $tool -n 2 -p hello -c sm -o /dev/full/x; err_has "/dev/full/x"
expect_status 2 $tool -c nosuch -o "$results"; err_has '"nosuch": neither a preset nor'
expect_status 2 $tool -c 'a:ether' -o "$results"; err_has 'a: no transport "ether"'
expect_status 2 $tool -c 'a:sm;x' -o "$results"; err_has 'a: "x" is not PARAMETER=VALUE'
expect_status 2 $tool -n 0 -o "$results"; err_has 'not "0"'
expect_status 2 $tool -p all -o "$results"; err_has 'no pattern "all"'

# --- a rank that dies, and a full disk: what was measured before is kept ----------------------------------------------
mkdir "$work/bin"
real=$(command -v strata-run)
cat >"$work/bin/strata-run" <<END
#!/bin/bash
# The program and its three arguments are the last words: rank 1 of the second pattern is killed when it has started.
n=\$((\$# - 4))
[ "\${*: -2:1}" = pairwise ] || exec "$real" "\$@"
exec "$real" "\${@:1:n}" sh -c '[ "\$PMIX_RANK" != 1 ] || kill -9 \$\$; exec "\$@"' - "\${@:n+1}"
END
chmod +x "$work/bin/strata-run"
PATH=$work/bin:$PATH expect_status 1 $tool -n 2 -c sm -o "$work/dies"
err_has 'sm, pairwise with 2 ranks: strata-run ended with status 137'
check "the others are kept" test "$(grep -c hello "$work/dies/results.csv")$(grep -c alltoall "$work/dies/results.csv")" = 11
mkdir "$work/small"
if mount -t tmpfs -o size=16k tmpfs "$work/small" 2>/dev/null; then
    expect_status 0 $tool -n 2 -c sm -p hello -o "$work/some"
    # Blank lines up to the end of a page: the next measurement needs another one.
    { cat "$work/some/results.jsonl" && yes '' | head -n 4096; } | head -c 4096 >"$work/small/results.jsonl"
    cp "$work/small/results.jsonl" "$work/before"
    head -c 20000 /dev/zero >"$work/small/fill" 2>/dev/null
    expect_status 1 $tool -n 2 -c sm -p hello,alltoall -o "$work/small"
    err_has "$work/small.*No space left on device"
    check "the measurement before the disk was full" cmp "$work/before" "$work/small/results.jsonl"
    umount "$work/small"
fi

# softhca: device mappings have a column of their own. A peer costs Strata no memory before the first message to it, and at most 16 kB
# once it is connected.
[ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 || finish
case ${SANITIZER_FLAGS-} in ?*) finish ;; esac
expect_status 0 $tool -n 8,32 -c srq -o "$work/softhca"
check "memory of a peer" python3 - "$work/softhca" <<'PY'
import json, sys
found = {(r["pattern"], r["ranks"]): r for r in json.load(open(sys.argv[1] + "/results.json"))}
def peer(pattern, of):
    return (of(found[pattern, 32]) - of(found[pattern, 8])) / 24
def ours(r):
    return sum(r["ours"].values())
assert all(r["mean"]["device"] > 0 for r in found.values())
for pattern in "hello", "pairwise":
    assert peer(pattern, ours) <= 8, (pattern, peer(pattern, ours))
for name in "private", "proportional":
    assert peer("alltoall", lambda r: r["mean"][name]) <= 16e3, (name, found)
PY
finish

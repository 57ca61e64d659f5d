#!/bin/bash
# strata-memscale --estimate names what limits a job: memory, of which a part stays free, or the tool itself.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-memscale

# Ranks of 20 MB and of 10 bytes.
mkdir "$work/estimate"
python3 - "$work/estimate/results.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as f:
    for config, size in ("large", 2e7), ("small", 10):
        for n in 2, 4:
            print(json.dumps({"config": config, "transport": "tcp", "parameters": {}, "pattern": "hello", "ranks": n,
                              "launcher": "strata-run", "mean": {"private": size}}), file=f)
PY
expect_status 0 $tool --estimate -p hello -c large:tcp -c small:tcp -o "$work/estimate"
out_has '^small  *hello  *1000000  largest number that --ranks takes$'
out_has '^large  *hello  *[0-9]*  memory: '
check "the memory is what limits the job" python3 - "$work/out" <<'PY'
import sys
line = next(line for line in open(sys.argv[1]) if line.startswith("large")).split()
ranks, needed, room = int(line[2]), float(line[4]), float(line[6])
assert abs(ranks * 2e7 / 2**30 - needed) < 0.06, line
assert abs(needed - room) < 0.13 + 0.04 * room, line # other programs may take memory in between
PY
expect_status 1 $tool -n 1000000 -p hello -c large:tcp -o "$work/estimate"
err_has 'refused: it needs about .* GiB, and .* GiB of the available memory may be used, enough for [0-9]*; --force tries it'

# Segments that ranks share: 2 MB that all of them map, and 10 kB of each pair of ranks.
mkdir "$work/shared"
python3 - "$work/shared/results.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as f:
    for n in 16, 8, 32:
        print(json.dumps({"config": "rings", "transport": "tcp", "parameters": {}, "pattern": "alltoall", "ranks": n,
                          "launcher": "strata-run", "mean": {"private": 1e6, "proportional": 1e6 + 2e6 / n + 1e4 * n}}), file=f)
PY
expect_status 0 $tool --estimate -p alltoall -c rings:tcp -o "$work/shared"
check "shared memory is part of the estimate" python3 - "$work/out" <<'PY'
import sys
_, _, ranks, _, needed = open(sys.argv[1]).read().splitlines()[1].split()[:5]
n = int(ranks)
assert abs(float(needed) * 2**30 / (2e6 + n * (1e6 + 1e4 * n)) - 1) < 0.02 + 0.1 / float(needed), (n, needed)
PY

# Sizes that are known before anything is measured: a process of MPICH, and a queue per peer of Open MPI, are larger than Strata's.
expect_status 0 $tool --estimate -p alltoall -c mpich-rc -c openmpi -c openmpi-per-peer -c per-peer -o "$work/none"
check "sizes by library" python3 - "$work/out" <<'PY'
import sys
for line in open(sys.argv[1]).read().splitlines()[1:]:
    config, _, ranks, limit, needed = line.split()[:5]
    process, peer = {"mpich-rc": (80e6, 68e3), "openmpi": (27e6, 32e3), "openmpi-per-peer": (12e6, 5.3e6), "per-peer": (2e6, 0.9e6)}[config]
    n = int(ranks)
    assert limit != "memory:" or float(needed) * 2**30 > 0.99 * n * (process + (n - 1) * peer), line
PY

# --- files of results that are given: nothing is started --------------------------------------------------------------
results() { # FOLDER: lines NAME TRANSPORT PATTERN RANKS PRIVATE of standard input
    mkdir -p "$1"
    python3 -c '
import json, sys
for line in sys.stdin:
    config, transport, pattern, ranks, size = line.split()
    print(json.dumps({"config": config, "transport": transport, "parameters": {}, "pattern": pattern, "ranks": int(ranks), "library": "Strata",
                      "launcher": "strata-run", "mean": {"private": float(size), "init_us": 1}, "largest": {}, "ours": {}}))' >"$1/results.jsonl"
}
# Three numbers of ranks cannot tell a beginning from growth.
for n in 2 4 8 16; do echo "grows tcp alltoall $n $((2000000 + 20000 * (n - 1)))"; done | results "$work/three"
expect_status 0 $tool --model -n 2 -p alltoall -c grows:tcp -o "$work/three"
out_has '^grows  *alltoall  *no model: it takes four numbers of ranks up to half the largest$'
for n in 2 4 8 16 32; do echo "grows tcp alltoall $n $((2000000 + 20000 * (n - 1)))"; done | results "$work/four"
expect_status 0 $tool --model -n 2 -p alltoall -c grows:tcp -o "$work/four"
out_has '^    private  *2 MB + 20 kB P$'
# One name with two transports, measured in any order: two lines of the figure, by ranks, and two models.
printf '%s\n' "same sm hello 32 1e6" "same tcp hello 4 3e6" "same sm hello 2 2e6" "same sm hello 8 1e6" "same tcp hello 2 4e6" | results "$work/same"
expect_status 0 $tool --model -n 2 -p hello -c same:sm -o "$work/same"
check "lines of the figure" test "$(sed -n 's/ .*//p' "$work/same/hello.dat" | tr '\n' ' ')" = '# 2 8 32 # 2 4 '
check "a model for each" test "$(grep -c '^same  *hello  *no model' "$work/out")" = 2
# The table in kB of 1000 bytes, as figures and the model have them; a name with a comma and quotes in the CSV.
echo 'a,"b" sm hello 2 2000000' | results "$work/table"
expect_status 0 $tool -n 2 -p hello -c 'a,"b":sm' -o "$work/table"
out_has '^a,"b"  *hello  *2  *2000  '
check "the CSV" python3 - "$work/table/results.csv" <<'PY'
import csv, sys
row, = csv.DictReader(open(sys.argv[1]))
assert row["config"] == 'a,"b"' and row["transport"] == "sm" and float(row["private"]) == 2e6 and row["library"] == "Strata", row
PY
# Lines of something else.
echo "other sm hello 2 2e6" | results "$work/other"
printf '%s\n' '{}' '{"config": "other", "ranks": 2}' '7' >>"$work/other/results.jsonl"
expect_status 0 $tool -n 2 -p hello -c other:sm -o "$work/other"
err_has "$work/other/results.jsonl: 2 of the lines are no measurements, and are left out"
# A file where the folder should be: nothing is measured that cannot be recorded.
touch "$work/file"
expect_status 2 $tool -n 2 -p hello -c sm -o "$work/file"; err_has "$work/file: Not a directory"
expect_status 2 $tool srq -o "$work/file"; err_has "$work/file: Not a directory"
finish

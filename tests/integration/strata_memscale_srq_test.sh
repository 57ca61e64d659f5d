#!/bin/bash
# strata-memscale srq: kernels that verify themselves, tables, going on with a run, mistakes that are named.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-memscale

# --- the kernels, over shared memory ----------------------------------------------------------------------------------
right() { # KERNEL RANKS
    rm -f "$work/kernel.json"
    expect_status 0 strata-run -n "$2" --mca btl sm,self $tool kernel "$1" S "$work"
    check "$1 with $2 ranks is right" grep -q '"right":true' "$work/kernel.json"
}
right ft 1
right ft 4
for kernel in is cg alltoall incast; do right $kernel 3; done
expect_status 0 strata-run -n 3 --mca btl sm,self $tool kernel ft S "$work"
err_has 'ft: 3 ranks do not divide a grid of 64 by 64 by 64'
check "no result" grep -q '"right":false' "$work/kernel.json"
expect_status 2 $tool kernel ep S "$work"
expect_status 2 $tool kernel is X "$work"

expect_status 2 $tool srq --class B -o "$work/none"; err_has 'takes S, W or A, not "B"'
expect_status 2 $tool srq --table 4 -o "$work/none"; err_has '--table takes a number from 1 to 3, not "4"'
expect_status 2 $tool srq --count 16,x -o "$work/none"; err_has '--count takes a number from 1 to 65536, not "x"'

# A strata-run that must not be started: the ranks are more than the machine holds with a queue for each pair of them.
mkdir "$work/bin"
printf '#!/bin/bash\necho started >>"%s"\nexit 9\n' "$work/started" >"$work/bin/strata-run"
chmod +x "$work/bin/strata-run"
if [ "$(awk '$1 == "MemAvailable:" { print int($2 / 1048576) }' /proc/meminfo)" -lt 800 ]; then
    PATH=$work/bin:$PATH expect_status 1 $tool srq --table 2 -n 1000 -k 16 -r 1 -o "$work/large"
    err_has 'no SRQ, cg: refused: 1000 ranks need about 86[0-9].[0-9] GiB, and .* GiB of the available memory may be used, enough for [0-9]*$'
fi

# One of fifteen recorded results is wrong: its job is started again, and its failure is not forgotten.
mkdir "$work/wrong"
rm -f "$work/started"
python3 - "$work/wrong/srq.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as f:
    for config, count in ("no SRQ", 72), ("SRQ", 16), ("SRQ, flow control", 16):
        for kernel in "alltoall", "incast", "is", "ft", "cg":
            print(json.dumps({"table": 2, "config": config, "count": count, "kernel": kernel, "class": "S", "ranks": 2, "round": 0,
                              "seconds": 1.5, "right": (config, kernel) != ("SRQ", "cg")}), file=f)
PY
PATH=$work/bin:$PATH expect_status 1 $tool srq --table 2 -n 2 -k 16 -r 1 -o "$work/wrong"
err_has 'SRQ, cg: strata-run ended with status 9'
check "one job is started" test "$(grep -c started "$work/started")" = 1
out_has '^cg .* SRQ  *16  *wrong$'

# --- tables, over softhca ---------------------------------------------------------------------------------------------
[ -e "$STRATA_BUILD/softhca/.libs/libsofthca.so" ] && ls "$STRATA_BUILD"/components/btl_openib/*.la >/dev/null 2>&1 || finish
case ${SANITIZER_FLAGS-} in ?*) finish ;; esac
# strata-run is beside the tool, not in PATH.
expect_status 0 env PATH=/usr/bin:/bin "$STRATA_BUILD/$tool" srq --quick --table 1 -o "$work/srq"
out_has '^ *4096  *[0-9]'
check "three figures" test "$(grep -c '^1,' "$work/srq/srq.csv")" = 3
# Nothing more is measured once a result cannot be recorded, as on a full disk: here the file is a folder.
mkdir -p "$work/unwritable/srq.jsonl"
expect_status 1 $tool srq --quick --table 1 -o "$work/unwritable"
err_has 'srq.jsonl: Is a directory'
check "no job after one that cannot be recorded" test "$(grep -c 'receives posted$' "$work/err")" = 1
finish

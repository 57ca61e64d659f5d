#!/bin/bash
# strata-memscale --launcher: its words, what it leaves in the folder of the results, and mistakes that are named.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1
tool=strata-memscale

# --- words ------------------------------------------------------------------------------------------------------------
# A launcher that writes its words to a file, and starts nothing.
printf '#!/bin/bash\nprintf "%%s\\n" "$@" >"%s"\nexit 3\n' "$work/words" >"$work/record"
chmod +x "$work/record"
many=$(printf 'x %.0s' {1..126})
most='most:sm'
for i in {1..16}; do most+=";p$i=$i"; done
expect_status 1 $tool --launcher "$work/record $many%n" -n 7 -p hello -c "$most" -o "$work/most"
check "all words of the launcher" test "$(grep -c '^x$' "$work/words")" = 126
check "the number of ranks" test "$(sed -n 127p "$work/words")" = 7
check "all parameters" test "$(grep -c '^STRATA_MCA_p[0-9]*=[0-9]*$' "$work/words")" = 16
check "the program and its arguments" grep -qx fence "$work/words"
for n in 128 300 500; do
    expect_status 2 $tool --launcher "$(printf 'x %.0s' $(seq $n))%n" -n 2 -p hello -c sm -o "$work/long"
    err_has '--launcher has more than 128 words'
done
expect_status 2 $tool --launcher "%n $(printf '%01100d' 0)" -n 2 -p hello -c sm -o "$work/long"
err_has '--launcher has more than 1023 characters'
check "a launcher that is refused leaves no folder" test ! -e "$work/long"
expect_status 1 $tool --launcher "$work/nosuch -n %n" -n 2 -p hello -c sm -o "$work/nosuch_results"
err_has "sm@nosuch, hello with 2 ranks: $work/nosuch -n %n was not started: No such file or directory"
check "one that cannot be started leaves nothing" test -z "$(find "$work/nosuch_results" -name 'strata-memscale.*')"

# --- a folder with results of other launchers -------------------------------------------------------------------------
results=$work/results
measures() { # WHAT NUMBER OPTION...: a run that starts so many jobs
    expect_status 0 $tool -n 2 -p alltoall -c sm -o "$results" "${@:3}"
    check "$1: $2 jobs" test "$(grep -c ' of 1: ' "$work/err")" = "$2"
}
measures "no launcher" 1
measures "a launcher" 1 --launcher 'strata-run -n %n'
measures "the same launcher with another option" 1 --launcher ' strata-run  --bind-to none -n %n'
measures "no launcher, again" 0
measures "a launcher, again" 0 --launcher 'strata-run -n %n'
check "the results" python3 - "$results" <<'PY'
import json, sys
found = sorted((r["config"], r["launcher"]) for r in json.load(open(sys.argv[1] + "/results.json")))
assert found == [("sm", "strata-run"), ("sm@strata-run", " strata-run  --bind-to none -n %n"),
                 ("sm@strata-run", "strata-run -n %n")], found
PY
check "a line of the figure for each" test "$(grep -c '^# sm' "$results/alltoall.dat")" = 3
expect_status 1 $tool --launcher "$work/record %n" -n 2 -p hello -c sm -o "$results"
err_has '1 of 1: sm@record, hello'
expect_status 2 $tool --launcher 'x %n' -n 2 -c "$(printf 'n%.0s' {1..62}):sm" -o "$results"
err_has 'its name is too long for --launcher'

# Jobs that are refused take no time, so they say nothing about the time that is left.
expect_status 1 $tool -n 1024,1025 -p hello -c srq -o "$work/refused"
check "two are refused" test "$(grep -c 'is refused: softhca holds' "$work/err")" = 2
check "no time is told from them" test "$(grep -c 's left' "$work/err")" = 0

# Nothing more is measured once a measurement cannot be recorded, as on a full disk: here the file is a folder.
mkdir -p "$work/full/results.jsonl"
expect_status 1 $tool -n 2,3 -p hello -c sm -o "$work/full"
err_has 'results.jsonl: Is a directory'
check "no job after one that cannot be recorded" test "$(grep -c ' of 2: ' "$work/err")" = 1

# Estimates and the model take the measurements of their launcher only.
mkdir "$work/both"
python3 - "$work/both/results.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as f:
    for config, launcher, size in ("sm", "strata-run", 1e7), ("sm@x", "x %n", 1e3), ("sm@x", "x -v %n", 1e9):
        for n in 4, 8, 16, 32, 64:
            print(json.dumps({"config": config, "transport": "sm", "parameters": {}, "pattern": "hello", "ranks": n,
                              "library": "Strata", "launcher": launcher, "mean": {"private": size}, "largest": {},
                              "ours": {}}), file=f)
PY
estimate() { # OPTION...
    $tool --estimate -p hello -c sm -o "$work/both" "$@" | awk 'NR == 2 { print $3 }'
}
own=$(estimate) small=$(estimate --launcher 'x %n') large=$(estimate --launcher 'x -v %n')
check "the estimates: $own, $small, $large" test "$((large * 50))" -lt "$own" -a "$((own * 5))" -lt "$small"
expect_status 0 $tool --model --launcher 'x %n' -n 4 -p hello -c sm -o "$work/both"
check "a model for each launcher" test "$(grep -c '^sm.* hello *fitted .*[+-]0.0 %$' "$work/out")" = 3

# Of any number of measurements, in any order: the largest is what the model is checked by.
mkdir "$work/many"
python3 - "$work/many/results.jsonl" <<'PY'
import json, sys
with open(sys.argv[1], "w") as f:
    for n in range(4, 44):
        print(json.dumps({"config": "sm", "transport": "sm", "parameters": {}, "pattern": "hello", "ranks": n,
                          "library": "Strata", "launcher": "strata-run", "mean": {"private": 1e7}, "largest": {},
                          "ours": {}}), file=f)
PY
expect_status 0 $tool --model -n 4 -p hello -c sm -o "$work/many"
out_has '^sm .* hello *fitted on N = 4 to 21; at 43: '

# --- a run that is ended ----------------------------------------------------------------------------------------------
# Its job ends first, with a process that has a session of its own, and the job's folder goes.
mkdir "$work/bin"
printf '#!/bin/bash\nsetsid sleep 1000 &\necho $! >"%s"\necho $$ >"%s"\nexec sleep 1000\n' "$work/left" "$work/job" >"$work/bin/strata-run"
chmod +x "$work/bin/strata-run"
ends() { # WORD...: of the tool
    rm -f "$work/job"
    PATH=$work/bin:$PATH $tool "$@" -n 2 -o "$work/ended" >"$work/out" 2>"$work/err" </dev/null &
    local run=$!
    check "$1: the job has begun" wait_until test -s "$work/job"
    kill -TERM "$run"
    wait "$run"
    check "$1: ended by the signal" test $? = 143
    check "$1: its job has ended" test ! -e "/proc/$(cat "$work/job")"
    check "$1: what its job has started has ended" test ! -e "/proc/$(cat "$work/left")"
    kill "$(cat "$work/job")" "$(cat "$work/left")" 2>/dev/null
    err_has 'strata-memscale: Terminated; what was measured before is kept, and the same command goes on'
    no_files
}
ends --pattern=hello --config=sm
ends srq --table=2 --rounds=1
finish

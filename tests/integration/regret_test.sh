#!/bin/bash
# bench/regret.py judges known figures: a better way is found and its row is short, noise alone makes none short, and the chosen half
# is not the judged one. Then a small run over self, whose figures count for nothing.
. "$STRATA_SOURCE/tests/integration/lib.sh"
regret=$STRATA_SOURCE/bench/regret.py
export PYTHONDONTWRITEBYTECODE=1
known() { # NAME PYTHON-EXPRESSION: costs of one row, way -> list over the rounds: us, or [us, exchange before, exchange after]
    python3 -c 'import json, random, sys
random.seed(1)
costs = {way: {"1024": [[v if isinstance(v, list) else [v, 0, 0]] for v in values]} for way, values in eval(sys.argv[2]).items()}
json.dump({"machine": "none", "date": "never", "rounds": 20, "costs": {"sm": {"window": costs}}}, open(sys.argv[1], "w"))' "$work/$1" "$2"
}
known better '{"default": [1.3] * 20, "put": [1.0] * 20, "get": [1.1] * 20}'
expect_status 1 python3 "$regret" --from "$work/better"
out_has '| 1024 | 1.300 | put | 30.0 | 30.0 to 30.0 | short |'
out_has 'Regret of 1 rows: 30.0 % in the median.*1 rows certainly above 10 %'
# Six ways, all alike but for noise of 30 %: the best of them looks better than the default, and is not.
known noise '{way: [random.uniform(0.85, 1.15) for _ in range(20)] for way in ("default", "a", "b", "c", "d", "e")}'
run python3 "$regret" --from "$work/noise"
out_has ' 0 rows certainly above 10 %'
# A way that is better in even rounds only is worse where it is judged.
known turns '{"default": [1.0] * 20, "even": [0.5, 2.0] * 10}'
expect_status 0 python3 "$regret" --from "$work/turns"
out_has '| 1024 | 1.000 | even or default | -25.0 | -50.0 to 0.0 |'
known peer '{"default": [2.0] * 20, "peer openmpi": [1.0] * 20}'
expect_status 0 python3 "$regret" --from "$work/peer"
out_has '| 1024 | 2.000 | default | 0.0 | 0.0 to 0.0 | 2.00 |'
# Two processors that are far apart in every third round, where another way is the best one; two samples in which they moved do not count.
known states '{"default": ([[2.0, 0.05, 0.05], [2.1, 0.05, 0.06], [9.0, 0.2, 0.21]] * 7)[:20], "put": ([[1.0, 0.05, 0.05], [1.0, 0.05, 0.05], [18.0, 0.2, 0.2]] * 7)[:18] + [[0.1, 0.05, 0.2], [0.1, 0.2, 0.05]]}'
expect_status 1 python3 "$regret" --from "$work/states"
out_has 'at several distances'; out_has '^## sm, window, exchange of a cache line 0.050 us'; out_has '^## sm, window, exchange of a cache line 0.200 us'
out_has '| 1024 | 2.0.0 | put | 1.* | short |'; out_has '| 1024 | 9.000 | default | 0.0 | 0.0 to 0.0 |'
out_has 'Regret of 2 rows.*1 rows certainly above 10 %'

expect_status 2 python3 "$regret" --patterns nothing; err_has 'there is no pattern nothing; there are: ping-pong'
expect_status 2 python3 "$regret" --rounds 1; err_has 'one to choose and one to judge'
small=(--transports self --patterns ping-pong --sizes 1k:2k --batches 1 --rounds 2 --no-peers)
resumed=(python3 "$regret" "${small[@]}" --state "$work/state")
run "${resumed[@]}" --raw "$work/raw"
out_has '^| 1024 |'; out_has '^| 2048 |'; err_has 'with fewer than six rounds no row is certain'; err_has 'round 1'
out_has ' x of off | x of online |'
check "figures are kept" grep -q '"put"' "$work/raw"
# A run that was ended goes on where it stopped, and a page keeps what was written by hand.
printf '# Old\n\n**What it says.** By hand.\n' >"$work/page"
run "${resumed[@]}" --page "$work/page"
check "nothing is run again" test "$(grep -c 'round 1' "$work/err")" = 0
check "the page is new" grep -q '^| 2048 |' "$work/page"
check "but for the text" grep -q '^\*\*What it says.\*\* By hand.$' "$work/page"
finish

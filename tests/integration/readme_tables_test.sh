#!/bin/bash
# bench/readme.py writes a table between its marks from a comparison that is there, and says what is missing.
. "$STRATA_SOURCE/tests/integration/lib.sh"
export PYTHONDONTWRITEBYTECODE=1
tables=("$STRATA_SOURCE/bench/readme.py" --state "$work")
comparison() { # FILE LEAVE-OUT: all rows of the table `embed` but those of a test; Strata has 1000, Open MPI 2000
    python3 - "$STRATA_SOURCE/bench" "$@" <<'EOF'
import json, sys
sys.path.insert(0, sys.argv[1])
import readme
rows = [{"test": test, **want, "strata": {"median": 1000}, "openmpi": {"median": 2000}, "ratio": 0.5}
        for label, test, want, factor in readme.EMBED if test != sys.argv[3]]
json.dump({"rounds": 3, "exchange_us": 0.05, "rows": rows}, open(sys.argv[2], "w"))
EOF
}
page() { printf 'before\n<!-- embed: made by make bench-readme -->\nold\n<!-- end of embed -->\nafter\n' >"$work/page"; }

page
comparison "$work/readme-embed.json" none
expect_status 0 python3 "${tables[@]}" --only embed "$work/page"
run cat "$work/page"
out_has '| latency 8 B, us | 1,000 | 2,000 | 0.50 |'
out_has '| private memory a rank.* | 1 | 2 | 0.50 |'
out_has 'medians of 3 rounds'; out_has '^before'; out_has '^after'
check "the old table is gone" test -z "$(grep '^old' "$work/page")"
check "a comparison is used once" test ! -e "$work/readme-embed.json"

page
comparison "$work/readme-embed.json" ring
expect_status 1 python3 "${tables[@]}" --only embed "$work/page"
err_has 'table embed: missing: ring of 8 ranks'
check "a table that lacks a row is not written" grep -q '^old' "$work/page"
comparison "$work/readme-embed.json" none
echo none >"$work/page"
expect_status 1 python3 "${tables[@]}" --only embed "$work/page"; err_has 'missing: the marks'
expect_status 2 python3 "${tables[@]}" --rounds 0 "$work/page"; err_has 'at least 1'
run grep -c 'made by make bench-readme' "$STRATA_SOURCE/README.md"
out_has '^2'
finish

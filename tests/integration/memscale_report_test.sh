#!/bin/bash
# bench/memscale_report.py: cells of a class and a number of ranks are compared with their own, and every job that failed is named.
. "${STRATA_SOURCE:?}/tests/integration/lib.sh" || exit 1

folder=$work/memscale
mkdir "$folder"
python3 - "$folder/results.json" <<'PY'
import json, sys
json.dump([{"config": "srq", "transport": "softhca", "parameters": {}, "pattern": "alltoall", "ranks": n, "library": "Strata",
            "ours": {"base: other": 100 * n}, "largest": {},
            "mean": {"private": 1e6 + 1e4 * n, "page_tables": 1e5 + 1e4 * n, "device_share": 0, "init_us": 1, "first_us": 1}}
           for n in (2, 4, 8)], open(sys.argv[1], "w"))
PY
cat >"$folder/srq.csv" <<'END'
table,config,count,kernel,class,ranks,posted,round,value,right
2,"no SRQ",72,is,S,4,0,0,1,1
2,"SRQ",64,is,S,4,0,0,1.5,1
2,"no SRQ",72,is,S,16,0,0,10,1
2,"no SRQ",72,is,A,4,0,0,100,1
2,"SRQ",64,is,A,4,0,0,50,0
END
cat >"$folder/log" <<'END'
strata-memscale: 1 of 3: srq, alltoall, 4 ranks
strata-memscale: tcp, alltoall with 512 ranks: strata-run ended with status 1
strata-memscale: sm, hello with 4 ranks: rank 3 left no figures
strata-memscale: srq with 2000 ranks is refused: softhca holds 1023 processes
strata-memscale: table 2, round 1: no SRQ, 72 buffers, is
strata-memscale: no SRQ, is: strata-run ended with status 1
strata-memscale: SRQ, ft: the result is wrong
END
expect_status 0 python3 -B "$STRATA_SOURCE/bench/memscale_report.py" "$folder"
out_has '^| srq | 4 to 8 | 10.0 | 20.0 | 0.1 |$'
out_has '^SRQ, more than 16 buffers, over queues per peer: median of 1 cells 1.50, largest 1.50.$'
out_has '^- tcp, alltoall with 512 ranks: strata-run ended with status 1$'
out_has '^- sm, hello with 4 ranks: rank 3 left no figures$'
out_has '^- srq with 2000 ranks is refused: softhca holds 1023 processes$'
out_has '^- no SRQ, is: strata-run ended with status 1$'
out_has '^- SRQ, ft: the result is wrong$'
check "progress is no failure" test "$(grep -c '^- .*\( of 3\|round 1\)' "$work/out")" = 0
finish

# shellcheck shell=bash
# What tests of one coll component share: `component` is its name, `program` coll_test, `status` the test's. Sourced.
# shellcheck disable=SC2034,SC2154 # variables of those that source this

# 100,000 calls take minutes on a busy machine: a program's own limit ends it shortly before job_limit does.
! full_form || export STRATA_TEST_TIMEOUT_SCALE="${STRATA_TEST_TIMEOUT_SCALE:-3}"

# Ranks are threads, nine of them; SETTING without the component's name.
threads() { # CASE SETTING=VALUE...
    local name="$*" out
    out=$(for s in "${@:2}"; do export "STRATA_MCA_${component}_$s"; done
        STRATA_CONFORMANCE=$1 "$program" 2>&1)
    if [ $? = 0 ] && grep -q '^100%: Checks: [1-9]' <<<"$out"; then
        echo "threads: $name: as the naive version"
    else
        echo "FAILED: threads: $name: $(tail -n 8 <<<"$out" | tr '\n' '|')"
        status=1
    fi
}

# Prints NAME=SUM for each counter of the component, over all ranks; the rows that every rank has must be there.
sums() { # REPORT
    python3 - "$1" "${component}_" <<'PY'
import json, sys
prefix = sys.argv[2]
for line in open(sys.argv[1]):
    report = json.loads(line)
    if report["report"] == "counters":
        assert report["missing"] == [], report["missing"]
        for row in report["rows"]:
            if row["name"].startswith(prefix):
                print(f"{row['name'][len(prefix):]}={row['sum']}")
PY
}

# Runs a case of strata-conformance as three processes, or `n_processes`: sets `out` and `ended`, and each counter's sum by its name.
three_processes() { # CASE "OPTION-OF-STRATA-RUN..." SETTING=VALUE...
    local options row args=() s
    read -ra options <<<"$2"
    for s in "${@:3}"; do args+=(--mca "${component}_${s%%=*}" "${s#*=}"); done
    rm -f "$work/report"
    ended=0
    out=$(timeout -k 5 "$job_limit" strata-run -n "${n_processes:-3}" "${options[@]}" --report-counters=json --report-file "$work/report" \
        strata-conformance ${args[@]+"${args[@]}"} --only "coll/$1" 2>&1) || ended=$?
    while read -r row; do printf -v "${row%%=*}" %s "${row#*=}"; done < <(sums "$work/report")
}

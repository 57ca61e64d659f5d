# shellcheck shell=bash disable=SC2154
# The section "connect" of openib.sh, which sources this: how long a connection takes to make by each method, when all ranks of a
# job first talk to all at once.
connect() {
    local method methods=(ud tcp rdmacm) ranks=64 on=$all_cpus
    if [ -n "${BENCH_GUEST-}" ]; then ranks=6; fi
    : >"$work/connect"
    for _ in $(seq "$rounds"); do
        for method in "${methods[@]}"; do
            timeout -k 5 "$limit" taskset -c "$on" strata-run ${softhca[@]+"${softhca[@]}"} -n $ranks --bind-to none \
                --report-transports=json --mca btl openib,self --mca btl_openib_connect "$method" strata-perf start \
                </dev/null >"$work/out" 2>"$work/err" || { echo "bench-openib: connecting by $method failed" >&2 && tail -n 5 "$work/err" >&2; }
            { sed -n 's/^talk to all *\([0-9.]*\) .*/all \1/p' "$work/out"
              grep -o '"connect_us":[0-9.]*\|"slowest_us":[0-9.]*' "$work/err" | sed 's/^"//; s/_us":/ /'; } |
                awk -v m="$method" '{ print m, $0 }' >>"$work/connect"
        done
    done
    printf '\nConnecting, %s, %d ranks that all talk to all at once (%s turns)\n' "$where" $ranks "$rounds"
    printf '%-8s%26s%26s%20s\n' method 'us a connection, median' 'slowest of a rank, median' 'all connected, s'
    sort -k1,2 -k3,3g "$work/connect" | awk -v methods="${methods[*]}" '
        { k = $1 SUBSEP $2; v[k, ++n[k]] = $3 }
        function median(m, what,   k) { k = m SUBSEP what; return n[k] ? v[k, int((n[k] + 1) / 2)] : 0 }
        END { count = split(methods, m, " ")
              for (i = 1; i <= count; i++)
                  printf "%-8s%26.1f%26.1f%20.3f\n", m[i], median(m[i], "connect"), median(m[i], "slowest"), median(m[i], "all") }'
}

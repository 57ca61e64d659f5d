#!/bin/bash
# Faults in a mixed job, two machines of two ranks each over tcp, sm and self: connections that are reset in the middle of a message, the
# only link down for good, callers that do not belong to the job, a rank that is stopped, very many messages that nobody expects. What
# goes by sm goes on. Then resets, a stopped rank and a killed one over two links. Short form: the first two.
. "$STRATA_SOURCE/tests/support/form.sh"
. "$STRATA_SOURCE/tests/cluster/lib.sh"
say_form "$(form "resets, link down" "resets, link down, strangers, a stopped rank, unexpected messages, two links")"
two_links
by_networks() { # LIST
    strata=(-x "STRATA_MCA_btl=tcp,sm,self" -x "STRATA_MCA_btl_tcp_if_include=$1")
}
by_networks 10.77.0.0/24,lo # strangers call by lo
hostile=$STRATA_BUILD/tests/programs/hostile
both_ways() { # how the ranks were joined: of each rank 2 peers by tcp and 1 by sm
    check "$1: across machines by tcp" test "$(grep -cE 'device TCP to 10\.77\.0\.[12],' "$work/err")" = 8
    check "$1: inside a machine by sm" test "$(grep -c 'path 1 of 1 by sm' "$work/err")" = 4
}

program=$(command -v strata-conformance)
[ ! -x "$STRATA_BUILD/.libs/strata-conformance" ] || program=$STRATA_BUILD/.libs/strata-conformance # not the script in front of it
case $(ldd "$program" 2>&1) in
*libasan* | *libtsan* | *"not a dynamic"*) resets='' ;; # nothing can be preloaded into this build
*)
    resets=$work/resets.so
    "${CC:-cc}" -O -shared -fPIC -Wall -Wextra -Werror -o "$resets" "$STRATA_SOURCE/tests/cluster/data/resets.c" -ldl || fail "resets.c does not build"
    ;;
esac
with_resets() { # EVERY CASES...
    local only=() name
    for name in "${@:2}"; do only+=(--only "$name"); done
    : >"$work/resets"
    cluster -np 4 "${strata[@]}" -x STRATA_MCA_pml_ob1_path_retry_ms=1 -x STRATA_MCA_mca_base_report_transports=text -x STRATA_TEST_FORM=short \
        -x STRATA_TEST_RESETS="$1" -x STRATA_TEST_RESETS_FILE="$work/resets" -x LD_PRELOAD="$resets" "$apart" "$program" "${only[@]}"
    check "a reset after each $1 messages, ${*:2}: ends well" test "$status" = 0
    check "a reset after each $1 messages, ${*:2}: cases were run and none failed" grep -qE '^[1-9][0-9]* cases passed, 0 failed' "$work/out"
    check "a reset after each $1 messages, ${*:2}: there were some" test -s "$work/resets"
    both_ways "${*:2}"
}
[ -z "$resets" ] || with_resets 60 messages/traffic/ messages/basic/

begin_cluster -np 4 "${strata[@]}" -x STRATA_MCA_btl_tcp_timeout_ms=4000 "$STRATA_BUILD/tests/programs/pending"
check "link down: all ranks wait" wait_until lines_are "$work/err" '^waiting' 4
ip -n ${space}1 link set eth0 down
end_cluster
ip -n ${space}1 link set eth0 up
wait_until link_is eth0 UP
for rank in 0 1 2 3; do
    check "link down: rank $rank was told by all of its operations" grep -q "^rank $rank: 4 failed" "$work/out"
    check "link down: rank $rank goes on with its neighbour by sm" grep -q "^rank $rank goes on" "$work/out"
done

if full_form; then
    [ -z "$resets" ] || with_resets 1000 messages/ clients/
    # Callers on both machines while connections are made, and while messages go.
    stranger=$STRATA_BUILD/tests/programs/stranger
    seed=$((RANDOM + 1))
    echo "strangers: seed $seed"
    callers() { # NAME NUMBER: so many on each machine, at the ports of its ranks
        local m jobs=()
        for m in 1 2; do
            bounded "$work/on" $m "$stranger" "$2" $((seed + m)) 20720 20721 >"$work/$1$m" 2>&1 &
            jobs+=($!)
        done
        wait "${jobs[@]}"
    }
    for mode in later streams; do
        rm -f "$work/go"
        begin_cluster -np 4 "${strata[@]}" -x STRATA_MCA_btl_tcp_ports=20720-20721 -x STRATA_MCA_btl_tcp_handshake_timeout_ms=1500 \
            "$hostile" $mode "$work/go"
        check "strangers, $mode: the job runs" wait_until lines_are "$work/err" '^running' 4
        callers first 140
        [ $mode = streams ] || touch "$work/go"
        callers second 140 # of `later` they may come when the job is through
        touch "$work/go"
        end_cluster
        check "strangers, $mode: the job ends well" test "$status" = 0
        for kind in scan silent random truncated length slow greeted replay; do
            for m in 1 2; do check "strangers, $mode: of kind $kind on machine $m" grep -q "^$kind [1-9]" "$work/first$m"; done
        done
    done
    check "strangers: no connection of the job has broken" test "$(grep -c ': 0 paths failed' "$work/out")" = 4

    cluster -np 4 "${strata[@]}" "$hostile" stop 1 3
    check "a stopped rank: ends well" test "$status" = 0
    cluster -np 4 "${strata[@]}" "$hostile" unexpected 100000
    check "messages that nobody expects: ends well" test "$status" = 0

    third_link
    by_networks 10.77.0.0/24,10.79.0.0/24
    if [ -n "$resets" ]; then
        with_resets 60 messages/traffic/ messages/basic/
        check "two links: across machines by the second, too" test "$(grep -cE 'device TCP to 10\.79\.0\.[12],' "$work/err")" = 8
    fi
    cluster -np 4 "${strata[@]}" "$hostile" stop 1 3
    check "two links, a stopped rank: ends well" test "$status" = 0
    cluster --enable-recovery -np 3 "${strata[@]}" -x STRATA_MCA_mca_base_fence_after_failure_ms=500 "$STRATA_BUILD/tests/programs/peer_death" sending
    check "two links, a rank killed while it sends: the others are told and go on" test "$(grep -c 'goes on$' "$work/out")" = 2
fi
finish

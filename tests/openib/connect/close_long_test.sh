#!/bin/bash
# Connections that are closed while nobody uses them, where the last words of it are lost or not acknowledged: no peer that lives is
# taken for dead, nothing is lost, and nobody waits for ever.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=openib-closing-$$

# ---- the acknowledgement of a last word is lost, that of who asks, of who answers, of both: the other end may be gone by then
for who in '= 0' '!= 0' '!= 9'; do
    printf '#!/bin/bash\n[ "$PMIX_RANK" %s ] && export SOFTHCA_FAULTS="acks 2"\nexec "$@"\n' "$who" >"$work/unheard"
    chmod +x "$work/unheard"
    for queues in "$shared" "$peer"; do
        try 0 "${openib[@]}" -n 3 --report-transports=json --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 12 \
            --mca btl_openib_receive_queues "$queues" "$work/unheard" "$STRATA_BUILD/tests/programs/reconnect" 40
        unsaid_but_reports "acknowledgements of ranks $who are lost, $queues"
        at_least torn_down 100 "acknowledgements of ranks $who are lost, $queues"
    done
done

# The same of all ranks, under puts with notice.
try 0 "${openib[@]}" -n 5 --report-transports=json --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 12 "$work/unheard" \
    "$STRATA_BUILD/tests/programs/notify_turns" 8
unsaid_but_reports "acknowledgements are lost under puts with notice"
at_least torn_down 20 "acknowledgements are lost under puts with notice"

# ---- the answer is lost itself, and its device has given up by the time that anything arrives again
said() { # REGEX: waits until stderr has it
    wait_until file_has "$work/err" "$1" || complain "nobody says '$1'"
}
close_unanswered() { # WANTED-STATUS sent|'' PARAMETERS...
    rm -f "$work/poll" "$work/go"
    # shellcheck disable=SC2086 # a word, or none
    in_background timeout -k 2 $limit "${openib[@]}" --keep-going -n 3 --mca btl_openib_max_connected_peers 1 --mca btl_openib_timeout 12 "${@:3}" \
        "$STRATA_BUILD/tests/programs/close_unanswered" "$work" $2
    said '^rank 0, .* has asked'
    said '^rank 1, .* is away'
    rank=$(sed -n 's/^rank 1, process \([0-9]*\), is away/\1/p' "$work/err")
    softhca-stat --fault "$rank" 'connections down' >"$work/stat" 2>&1 || complain "no fault: $(cat "$work/stat")"
    touch "$work/poll"
    said '^rank 1, .* has polled'
    softhca-stat --fault "$rank" 'connections up' >"$work/stat" 2>&1
    touch "$work/go"
    wait $job
    status=$?
    [ $status = "$1" ] || complain "status $status, not $1: close_unanswered ${*:2}: $(cat "$work/out" "$work/err")"
    nothing_left "close_unanswered $work"
}
close_unanswered 0 ''
! grep -v '^rank ., process' "$work/err" || complain "something is said of an answer that was lost"
# A message in front of it is lost, too. Where it is kept it is sent again, once; else both are told.
close_unanswered 0 sent --mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50
close_unanswered 1 sent
[ "$(grep -c 'the peer failed' "$work/out")" = 2 ] || complain "not both were told: $(cat "$work/out")"

# ---- a transport that is closed: what was sent arrives, with every third message lost for the first time, and goodbye is said
try 0 LD_PRELOAD="$STRATA_BUILD/softhca/.libs/libsofthca.so" SOFTHCA_FAULTS='drop 3' "$STRATA_BUILD/tests/programs/close_after_send"
grep -q 'all has come' "$work/out" || complain "not all has come: $(cat "$work/out")"

# ---- while messages come faster than they are handled
try 0 LD_PRELOAD="$STRATA_BUILD/softhca/.libs/libsofthca.so" "$STRATA_BUILD/tests/programs/close_under_load"
grep -q 'all have closed' "$work/out" || complain "not all have closed: $(cat "$work/out")"
finish

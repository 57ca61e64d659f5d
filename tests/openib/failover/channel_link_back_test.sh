#!/bin/bash
# The only port of both ends is down while messages go by a channel, and comes back. A connection that the device keeps carries the
# channel on; one that was lost has broken it at both ends, and a fresh channel carries the rest.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_FABRIC=channel-back-$$
. "$STRATA_SOURCE/tests/openib/failover/failover_lib.sh"
messages=4000
keep=(--mca pml_ob1_path_keep 1 --mca pml_ob1_path_retry_ms 50)
begin_channel() { # PARAMETERS...: starts both ranks and waits until half of the messages are sent
    rm -f "$work/go"
    in_background timeout -k 2 $limit "${openib[@]}" --mca mca_base_verbose 3 -n 2 "$@" "$STRATA_BUILD/tests/programs/channel_resume" \
        $messages 0 "$work/go"
    wait_until file_has "$work/out" '^half' || complain "half of the messages are not sent"
    mapfile -t ranks <<<"$(pgrep -f "^[^ ]*channel_resume $messages 0 $work/go")"
    [ ${#ranks[@]} = 2 ] || complain "there are ${#ranks[@]} ranks"
}
end_channel() { # CHANNELS
    wait $job
    status=$?
    [ $status = 0 ] || complain "status $status"
    grep -qE "^all $messages by $1 channels" "$work/out" || complain "not by $1 channels: $(cat "$work/out")"
    tail -n 1 "$work/out"
}
# Both ports are down before the second half begins, and up when the connection is known to be lost.
begin_channel "${keep[@]}"
for rank in "${ranks[@]}"; do fault "$rank" "port soft0 1 down"; done
touch "$work/go"
said 2 'path 0 of [12] to rank [01] by openib failed'
for rank in "${ranks[@]}"; do fault "$rank" "port soft0 1 up"; done
end_channel '([2-9]|[0-9]{2,})'
# A message is lost and sent again after 2 s, up to six times.
begin_channel --mca btl_openib_timeout 19
fault "${ranks[0]}" "connections down"
touch "$work/go"
wait_until file_has "$work/out" '^goes on' || complain "the second half does not begin"
fault "${ranks[0]}" "connections up"
end_channel 1
finish

#!/bin/bash
# Channels between processes that no launcher has started (tests/programs/channel_link.c), on two machines: one caller of the same machine
# by shared memory, two of the other machine by TCP. One of the other machine dies, and the others' channels go on. These machines share
# memory in fact, which such processes find out, so that callers of the other machine leave sm out.
. "$STRATA_SOURCE/tests/cluster/lib.sh"
two_links
program=$STRATA_BUILD/tests/programs/channel_link
export STRATA_CHANNEL_SECRET='a secret of some length' STRATA_MCA_mca_base_report_transports=text
unset STRATA_CHANNEL_SECRET_FILE
on() { timeout -k 2 "$job_limit" "$work/on" "$@"; } # MACHINE COMMAND...
call() { # MACHINE ARGS...
    local machine=$1
    shift
    [ "$machine" = 1 ] || local -x STRATA_MCA_btl=tcp,self
    on "$machine" "$program" connect "$address" "$@"
}
listener=
start() { # ARGS...: a process on the first machine that listens; sets $address
    rm -f "$work/listener"
    on 1 "$program" "$@" >"$work/listener" 2>"$work/listener.err" &
    listener=$!
    wait_until file_has "$work/listener" '^listens at' || fail "$*: it does not listen: $(cat "$work/listener.err")"
    address=$(sed -n 's/^listens at //p' "$work/listener")
}
ended() { check "$1: the one that listens ends well" wait "$listener"; } # WHAT

start listen 10.77.0.1:0 3
callers=()
for machine in 1 2 2; do
    call $machine 200 >"$work/caller.${#callers[@]}" 2>"$work/caller.err.${#callers[@]}" &
    callers+=($!)
done
for i in "${!callers[@]}"; do check "caller $i ends well" wait "${callers[i]}"; done
ended "three callers"
check "all messages came back" test "$(cat "$work"/caller.[0-9] | grep -c '^all came back')" = 3
check "the same machine: sm" grep -q 'by sm' "$work/caller.err.0"
for i in 1 2; do check "the other machine: tcp" grep -q 'by tcp, .*device TCP to 10\.77\.0\.1,' "$work/caller.err.$i"; done

start survive 10.77.0.1:0
call 2 5 die >"$work/died" 2>&1 &
victim=$!
check "the one that is to die joins" wait_until file_has "$work/died" '^number 1'
check "beside one that died: ends well" call 2 30
wait "$victim" 2>/dev/null
ended "one that died"
check "its channel has failed" grep -q '^1: the peer failed' "$work/listener"
check "the other one has ended" grep -q '^2: ended' "$work/listener"
finish

#!/bin/bash
# Two devices, of which one at a time loses its port in the middle of long and short messages and gets it back: nothing is
# lost. When both have lost it, every rank ends with an error that names the peer.
. "$STRATA_SOURCE/tests/openib/lib.sh"
snapshot
export SOFTHCA_DEVICES=2 SOFTHCA_FABRIC=openib-rails-$$
fault() { softhca-stat --fault "$1" "$2" >"$work/stat" 2>&1 || complain "fault $2: $(cat "$work/stat")"; }
said() { # COUNT REGEX: waits until so many lines of stderr have it
    for _ in $(seq 300); do
        [ "$(grep -cE "$2" "$work/err")" -ge "$1" ] && return
        sleep 0.1
    done
    complain "not $1 times '$2'"
}
begin() { # PARAMETERS...
    rm -f "$work/enough"
    : >"$work/err" # what the last run said is not said by this one
    timeout -k 2 80 "${openib[@]}" --mca mca_base_verbose 3 -n 2 "$@" "$hostile" streams "$work/enough" >"$work/out" 2>"$work/err" &
    job=$!
    said 2 '^running'
    mapfile -t ranks < <(pgrep -f "^[^ ]*hostile streams $work/enough")
    [ ${#ranks[@]} = 2 ] || complain "there are ${#ranks[@]} ranks"
}
end() { # WANTED-STATUS
    wait $job
    status=$?
    case $1 in
    0) [ $status = 0 ] || complain "status $status" ;;
    *) [ $status != 0 ] && [ $status != 124 ] || complain "status $status where an error was due" ;;
    esac
    nothing_left "$work/enough"
}
failed_at() { # of how many ranks paths have failed
    local n
    n=$(grep -cE 'rank [01]: [1-9][0-9]* paths failed' "$work/out")
    [ "$n" = "$1" ] || complain "paths have failed at $n ranks, not $1: $(cat "$work/out")"
}

# ---- nothing happens to it: both devices carry messages
begin
touch "$work/enough"
end 0
failed_at 0

# ---- the first device's port, then, when that works again, the second's; at either rank
begin --mca pml_ob1_path_retry_ms 200
fault "${ranks[0]}" 'port soft0 1 down'
said 2 'path 0 of 2 to rank [01] by openib failed'
fault "${ranks[0]}" 'port soft0 1 up'
said 2 'path 0 of 2 to rank [01] works again'
fault "${ranks[1]}" 'port soft1 1 down'
said 2 'path 1 of 2 to rank [01] by openib failed'
fault "${ranks[1]}" 'port soft1 1 up'
said 2 'path 1 of 2 to rank [01] works again'
touch "$work/enough"
end 0
failed_at 2

# ---- a device is removed for good
begin
fault "${ranks[1]}" 'device soft0 gone'
said 2 'path 0 of 2 to rank [01] by openib failed'
touch "$work/enough"
end 0
failed_at 2

# ---- no port is left
begin
fault "${ranks[0]}" 'port soft0 1 down'
fault "${ranks[0]}" 'port soft1 1 down'
end nonzero
says 'rank [01] on host .* failed: the peer failed: transport retry'
finish

# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh sets what is used here
# Shared by the tests of ports that go down under load: two ranks stream checked messages, long and short, until a file tells them to
# end. Sourced after lib.sh and snapshot.
fault() { # PID COMMAND
    softhca-stat --fault "$1" "$2" >"$work/stat" 2>&1 || complain "fault $2: $(cat "$work/stat")"
}
# Waits until so many lines of stderr match; looks every $said_every seconds (0.05). Ten minutes are a safety net.
said() { # COUNT REGEX
    local end=$((SECONDS + 600))
    while [ $SECONDS -lt $end ]; do
        [ "$(grep -cE "$2" "$work/err")" -ge "$1" ] && return
        kill -0 $job 2>/dev/null || break
        sleep "${said_every:-0.05}"
    done
    [ "$(grep -cE "$2" "$work/err")" -ge "$1" ] && return
    complain "not $1 times '$2'"
}
# Starts both ranks and waits until they stream, in messages of $stream_mib MiB where that is set.
begin() { # PARAMETERS...
    rm -f "$work/enough"
    in_background timeout -k 2 900 env HOSTILE_TIMEOUT=900 "${openib[@]}" --mca mca_base_verbose 3 -n 2 "$@" \
        "$hostile" streams "$work/enough" ${stream_mib-}
    said 2 '^running'
    mapfile -t ranks <<<"$(pgrep -f "^[^ ]*hostile streams $work/enough")" # /dev/fd is not everywhere
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
enough() { # ends the stream, without an error
    touch "$work/enough"
    end 0
}
failed_at() { # COUNT: so many ranks have lost paths
    local n
    n=$(grep -cE 'rank [01]: [1-9][0-9]* paths failed' "$work/out")
    [ "$n" = "$1" ] || complain "paths have failed at $n ranks, not $1: $(cat "$work/out")"
}

# shellcheck shell=bash
# shellcheck disable=SC2154 # lib.sh sets what is used here
# What tests of ports that go down under load share: two ranks that stream checked messages, long and short, until they are
# told that it is enough. Sourced after lib.sh and snapshot.
fault() { # PID COMMAND
    softhca-stat --fault "$1" "$2" >"$work/stat" 2>&1 || complain "fault $2: $(cat "$work/stat")"
}
said() { # COUNT REGEX: waits until so many lines of stderr have it, for `patience` tenths of a second at most
    for _ in $(seq "${patience:-300}"); do
        [ "$(grep -cE "$2" "$work/err")" -ge "$1" ] && return
        sleep 0.1
    done
    complain "not $1 times '$2'"
}
begin() { # PARAMETERS...
    rm -f "$work/enough"
    in_background timeout -k 2 250 "${openib[@]}" --mca mca_base_verbose 3 -n 2 "$@" "$hostile" streams "$work/enough"
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
enough() { # it ends well
    touch "$work/enough"
    end 0
}
failed_at() { # of how many ranks paths have failed
    local n
    n=$(grep -cE 'rank [01]: [1-9][0-9]* paths failed' "$work/out")
    [ "$n" = "$1" ] || complain "paths have failed at $n ranks, not $1: $(cat "$work/out")"
}
